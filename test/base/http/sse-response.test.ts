import { get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { SseResponse, untilDisconnect } from '../../../src/base/http/sse-response.ts';
import { createLog } from '../../../src/base/log.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const log = createLog('silent');

/** A server that answers with a stream, and a client that has received the head of the answer. */
async function stream(): Promise<{ sse: SseResponse; answer: IncomingMessage; clock: ManualClock }> {
  const clock = new ManualClock();
  const app = createHttpApp(log);
  const { promise, resolve } = Promise.withResolvers<SseResponse>();
  app.get('/stream', async (request, reply) => resolve(new SseResponse(request, reply, clock)));
  await app.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => {
    app.server.closeAllConnections();
    return app.close();
  });
  const { port } = app.server.address() as AddressInfo;
  const answer = await new Promise<IncomingMessage>((received, failed) => {
    get({ host: '127.0.0.1', port, path: '/stream', agent: false }, received).once('error', failed);
  });
  answer.on('error', () => {});
  return { sse: await promise, answer, clock };
}

describe('a stream of server-sent events', () => {
  it('begins before the first event, as a stream that is not stored', async () => {
    const { answer } = await stream();
    expect(answer.statusCode).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-request-id': expect.any(String),
    });
  });

  it('writes an event as its id, its type and a line of data for each line', async () => {
    const { sse, answer } = await stream();
    await sse.write({ id: '7', event: 'agent.event', data: 'a\nb\rc\r\nd' });
    await sse.write({ id: '8', event: 'agent.event', data: '' });
    sse.end();
    expect(await text(answer)).toBe(
      'id: 7\nevent: agent.event\ndata: a\ndata: b\ndata: c\ndata: d\n\n' +
        'id: 8\nevent: agent.event\ndata: \n\n',
    );
  });

  it('sends a comment every 15 s, until it ends', async () => {
    const { sse, answer, clock } = await stream();
    await clock.advance(14_999);
    await clock.advance(1);
    await clock.advance(15_000);
    sse.end();
    expect(await text(answer)).toBe(': \n\n: \n\n');
    expect(clock.timers).toBe(0);
  });

  it('is cut so that the reader sees that it is incomplete', async () => {
    const { sse, answer } = await stream();
    await sse.write({ id: '1', event: 'output', data: 'x' });
    sse.cut();
    await expect(text(answer)).rejects.toThrow('aborted');
  });

  it('makes the writer wait while the reader is slow, and lets it go when the reader has gone', async () => {
    const { sse, answer, clock } = await stream();
    const data = 'x'.repeat(1024 * 1024);
    let writes = 0;
    const writing = (async () => {
      while (!sse.gone.aborted) {
        await sse.write({ id: '1', event: 'output', data });
        writes += 1;
      }
    })();
    await eventually(async () => {
      const before = writes;
      await new Promise((resolve) => setImmediate(resolve));
      expect(writes).toBe(before);
      expect(writes).toBeGreaterThan(0);
    }, 120_000);
    expect(writes).toBeLessThan(100);
    answer.destroy();
    await writing;
    expect(sse.gone.aborted).toBe(true);
    expect(clock.timers).toBe(0);
  });
});

describe('a wait that ends with the connection', () => {
  it('gives what it has waited for', async () => {
    expect(await untilDisconnect(Promise.resolve(1), new AbortController().signal)).toBe(1);
  });

  it('gives nothing when the connection ends first, or has ended already', async () => {
    const gone = new AbortController();
    const waiting = untilDisconnect(new Promise(() => {}), gone.signal);
    gone.abort();
    expect(await waiting).toBeUndefined();
    expect(await untilDisconnect(Promise.resolve(1), gone.signal)).toBeUndefined();
  });

  it('gives nothing when what it waits for fails', async () => {
    const failing = Promise.reject(new Error('closed'));
    expect(await untilDisconnect(failing, new AbortController().signal)).toBeUndefined();
  });
});
