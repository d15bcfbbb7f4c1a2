import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../../src/client/connector.ts';
import { serverEvents } from '../../../src/client/streams/server-events.ts';
import type { ServerSentEvent } from '../../../src/contract/server-sent-events.ts';

async function parse(chunks: Iterable<Uint8Array>): Promise<ServerSentEvent[]> {
  const events: ServerSentEvent[] = [];
  const answer = { status: 200, pieces: () => asynchronous(chunks) } as unknown as Answer;
  for await (const event of serverEvents(answer)) events.push(event);
  return events;
}

async function* asynchronous(chunks: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

const TEXT =
  ': a comment\n\nid: 1\nevent: agent.event\ndata: {"text":"Grüße 🌍",\ndata:  "b":1}\n\n' +
  'data\nid:2\r\ndata:x\r\n\r\nevent: nothing\n\nid: 3\rdata: y\r\rdata: unfinished\n';
const EVENTS = [
  { id: '1', event: 'agent.event', data: '{"text":"Grüße 🌍",\n "b":1}' },
  { id: '2', event: 'message', data: '\nx' },
  { id: '3', event: 'message', data: 'y' },
];

describe('a stream of server-sent events', () => {
  it('is read with comments, several data lines and every kind of line end', async () => {
    expect(await parse([Buffer.from(TEXT)])).toEqual(EVENTS);
  });

  it('gives the same events wherever it is cut into chunks', async () => {
    const bytes = Buffer.from(TEXT);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
        expect(await parse(chunks)).toEqual(EVENTS);
      }),
    );
  });

  it('is given up where a line has no end', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    await expect(parse(Array.from({ length: 17 }, () => chunk))).rejects.toThrow(
      'a line or event that is too long',
    );
  });

  it('is given up where an event has no end', async () => {
    const chunk = Buffer.from('data: x\n'.repeat(128 * 1024));
    await expect(parse(Array.from({ length: 150 }, () => chunk))).rejects.toThrow(
      'a line or event that is too long',
    );
  });

  it('keeps the last id for events that have none', async () => {
    const events = await parse([Buffer.from('id: 7\ndata: a\n\ndata: b\n\n')]);
    expect(events.map(({ id }) => id)).toEqual(['7', '7']);
  });
});
