import { describe, expect, it, onTestFinished } from 'vitest';
import { startDaemon, startDelivering } from '../../support/daemon/running-daemon.ts';

/** Reads the stream until `count` events have arrived. */
async function readStream(port: number, token: string, headers: Record<string, string>, count: number) {
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/events/stream`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: abort.signal,
  });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const events: { id: string; event: string; data: string }[] = [];
  const read = (async () => {
    let text = '';
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const lines = text.slice(0, end).split(/\r\n|\r|\n/);
        text = text.slice(end + 2);
        const field = (name: string) =>
          lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
        const [id] = field('id');
        if (id !== undefined)
          events.push({ id, event: field('event')[0] ?? '', data: field('data').join('\n') });
        if (events.length >= count) return;
      }
    }
  })();
  return { events, read };
}

describe('GET /events/stream', () => {
  it('sends every stored event after Last-Event-ID, and then each one that is committed', async () => {
    const { token, port, publish } = await startDelivering();
    for (let i = 1; i <= 3; i++) await publish(`{"i":${i}}`);
    const all = await readStream(port, token, { 'last-event-id': '0' }, 6);
    const resumed = await readStream(port, token, { 'last-event-id': '3' }, 3);
    await publish('{"i":4}');
    await publish('{"i":5}');
    await Promise.all([all.read, resumed.read]);
    expect(all.events.map(({ id, event }) => [id, event])).toEqual([
      ['1', 'sandbox.ready'],
      ...['2', '3', '4', '5', '6'].map((id) => [id, 'agent.event']),
    ]);
    expect(resumed.events.map(({ data }) => JSON.parse(data).payload.i)).toEqual([3, 4, 5]);
  });

  it('sends only new events without Last-Event-ID', async () => {
    const { token, port, publish } = await startDelivering();
    await publish('{"i":1}');
    const stream = await readStream(port, token, {}, 1);
    await publish('{"i":2}');
    await stream.read;
    expect(stream.events.map(({ id }) => id)).toEqual(['3']);
  });

  it('sends a body whole, whatever line ends it contains', async () => {
    const { token, port, publish } = await startDelivering();
    const stream = await readStream(port, token, {}, 1);
    await publish('{"a":\n1,\r"b":\r\n2}');
    await stream.read;
    expect(JSON.parse(stream.events[0]?.data ?? '').payload).toEqual({ a: 1, b: 2 });
  });

  it('sends each of many events that are committed while it is read once, and in order', async () => {
    const { token, port, publish } = await startDelivering();
    const count = 1_500;
    const { events, read } = await readStream(port, token, { 'last-event-id': '0' }, count + 1);
    for (let i = 0; i < count; i += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, n) => publish(`{"i":${i + n}}`)));
    }
    await read;
    expect(events.map(({ id }) => Number(id))).toEqual(Array.from({ length: count + 1 }, (_, n) => n + 1));
    expect(new Set(events.map(({ data }) => JSON.parse(data).event_id)).size).toBe(count + 1);
  });

  it('starts with the next event for a Last-Event-ID above the last sequence, as a client of a fork may send', async () => {
    const { token, port, publish } = await startDelivering();
    await publish('{"i":1}');
    const { events, read } = await readStream(port, token, { 'last-event-id': '999' }, 1);
    await publish('{"i":2}');
    await read;
    expect(events.map(({ data }) => JSON.parse(data).payload)).toEqual([{ i: 2 }]);
  });

  it('refuses a Last-Event-ID that is not a sequence number', async () => {
    const { call } = await startDaemon();
    const answer = await call('GET', '/api/v1/events/stream', { headers: { 'last-event-id': 'x' } });
    expect(answer).toMatchObject({ status: 400, json: { error: { code: 'invalid_request' } } });
  });
});
