import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerHeaders, isFinal, upgradeHead } from '../../../src/manager/api/daemon-answer.ts';

const answer = (statusCode: number, headers: IncomingHttpHeaders = {}) =>
  ({ statusCode, headers }) as IncomingMessage;

const GUARDS = {
  'content-security-policy': "sandbox; default-src 'none'",
  'x-content-type-options': 'nosniff',
};

describe('the headers of an answer of a daemon', () => {
  it('are those of its body and its stream, and none besides', () => {
    const headers = {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-output-offset': '5',
      'set-cookie': ['a=b'],
      location: 'http://evil.test/',
      'access-control-allow-origin': '*',
      connection: 'keep-alive',
    };
    expect(answerHeaders(answer(200, headers))).toEqual({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-output-offset': '5',
      ...GUARDS,
    });
  });

  it.each(['text/html', 'application/javascript', 'application/json; charset=utf-16', '', 'a\nb'])(
    'call the type %j bytes, so that no browser runs it',
    (type) => {
      const sent = answerHeaders(answer(200, { 'content-type': type, 'content-length': '3' }));
      expect(sent).toEqual({
        'content-type': 'application/octet-stream',
        'content-length': '3',
        ...GUARDS,
      });
    },
  );

  it('have a length where it is certain', () => {
    const lengthOf = (headers: IncomingHttpHeaders) => answerHeaders(answer(200, headers))['content-length'];
    expect(lengthOf({ 'content-length': '12' })).toBe('12');
    expect(lengthOf({ 'content-length': '12', 'transfer-encoding': 'chunked' })).toBeUndefined();
    expect(lengthOf({ 'content-length': '-1' })).toBeUndefined();
    expect(lengthOf({ 'content-length': '1, 1' })).toBeUndefined();
    expect(answerHeaders(answer(204, { 'content-length': '5' }))).toEqual(GUARDS);
  });

  it('hold nothing that could end a header, whatever the daemon sends', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (value, type) => {
        const sent = answerHeaders(answer(200, { etag: value, 'content-type': type, allow: value }));
        for (const each of Object.values(sent)) expect(each).toMatch(/^[\x20-\x7e]*$/);
      }),
    );
  });
});

it('an answer is final from 200 to 599', () => {
  expect([100, 101, 199, 200, 404, 599, 600, 999].map((status) => isFinal(answer(status)))).toEqual([
    ...[false, false, false, true, true, true],
    ...[false, false],
  ]);
});

it('a WebSocket begins with 101 and the proof of its key, and with nothing of the daemon besides', () => {
  const accept = `${'A'.repeat(27)}=`;
  const headers = { 'sec-websocket-accept': accept, 'sec-websocket-protocol': 'evil', 'set-cookie': ['a'] };
  expect(upgradeHead(answer(101, headers))?.split('\r\n')).toEqual([
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${accept}`,
    '',
    '',
  ]);
  expect(upgradeHead(answer(200, headers))).toBeNull();
  expect(upgradeHead(answer(101))).toBeNull();
  expect(upgradeHead(answer(101, { 'sec-websocket-accept': `${accept}\r\nX: y` }))).toBeNull();
});
