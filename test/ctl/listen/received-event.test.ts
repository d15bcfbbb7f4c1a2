import { describe, expect, it } from 'vitest';
import { jsonOnOneLine, parseEvent } from '../../../src/ctl/listen/received-event.ts';
import { eventBody } from '../../support/ctl/stand-in-daemon.ts';

describe('a received event', () => {
  it('keeps the text of its payload as sent, on one line', () => {
    const payload = '{ "price": 1.10,\n  "huge": 12345678901234567890, "payload":{} }';
    expect(parseEvent(eventBody(1, payload))?.payload_text).toBe(payload.replace('\n', ' '));
  });

  it('is told from other keys by its own, not by its text', () => {
    const body = eventBody(1).replace('sbx_1', 'a\\"payload\\":');
    expect(parseEvent(body)?.payload_text).toBe('{"step":1}');
  });

  it('is also read where its keys stand in another order', () => {
    const { event_id, ...rest } = JSON.parse(eventBody(1));
    expect(parseEvent(JSON.stringify({ ...rest, event_id }))).toMatchObject({
      event_id,
      payload_text: '{"step":1}',
    });
  });

  it('need not have a sequence', () => {
    expect(parseEvent(eventBody(1).replace('"sequence":1,', ''))?.sequence).toBeNull();
  });

  it.each(['', 'null', '[]', '1', '{', '{}', '{"event_id":1}', eventBody(1, '[]')])('is not %j', (body) => {
    expect(parseEvent(body)).toBeNull();
  });
});

describe('JSON on one line', () => {
  it('means the same', () => {
    const json = '{\r\n  "a": "\\n",\n  "b": [1,\n2]\n}';
    expect(jsonOnOneLine(json)).not.toMatch(/[\r\n]/);
    expect(JSON.parse(jsonOnOneLine(json))).toEqual(JSON.parse(json));
  });
});
