import { expect, it, onTestFinished, vi } from 'vitest';
import type { FeedEvent } from '../../../src/contract/feed.ts';
import { startScripted } from '../../support/manager/scripted-manager.ts';
import { describeOnStores } from '../../support/stores.ts';

vi.setConfig({ testTimeout: 120_000 });

const PATH = '/api/v1/events';

interface Message {
  id: string;
  event: string;
  data: string;
}

/** A follower of a stream: reads messages until there are so many. */
async function follow(url: string, token: string, headers: Record<string, string> = {}) {
  const leaving = new AbortController();
  onTestFinished(() => leaving.abort());
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream', ...headers },
    signal: leaving.signal,
  });
  const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    status: response.status,
    headers: response.headers,
    leave: () => leaving.abort(),
    async next(count: number): Promise<Message[]> {
      const messages: Message[] = [];
      while (messages.length < count) {
        const end = text.indexOf('\n\n');
        if (end < 0) {
          const { value, done } = (await chunks?.read()) ?? { done: true };
          if (done) throw new Error(`the stream ended after ${JSON.stringify(messages)}`);
          text += value;
          continue;
        }
        const [, id, event, data] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
        text = text.slice(end + 2);
        if (id !== undefined) messages.push({ id, event: event ?? '', data: data ?? '' });
      }
      return messages;
    },
  };
}

const bodiesOf = (messages: Message[]) => messages.map(({ data }) => data);

describeOnStores('the feed of events', (fresh) => {
  it('is read in pages by its own team, with the scope for webhooks', async () => {
    const { client, team } = await startScripted(await fresh());
    const reader = await client('team_1', 'webhooks:read', 'usage:read');
    const other = await client('team_2', 'webhooks:read');
    const start = (await reader.get(PATH)).data;
    expect(start).toEqual({ events: [], next_cursor: expect.stringMatching(/./) });
    const id = await team.claim();
    await team.post(`/api/v1/sandboxes/${id}/pause`);
    await team.call('DELETE', `/api/v1/sandboxes/${id}`);
    const first = (await reader.get(`${PATH}?limit=1&cursor=${start.next_cursor}`)).data;
    const rest = (await reader.get(`${PATH}?cursor=${first.next_cursor}&limit=5000`)).data;
    const events: FeedEvent[] = [...first.events, ...rest.events];
    expect(events.slice(0, 3)).toMatchObject([
      { event_type: 'sandbox.ready', sandbox_id: id, sequence: 1, timestamp: '2026-01-01T00:00:00.000Z' },
      { event_type: 'sandbox.paused', sandbox_id: id, sequence: 2 },
      { event_type: 'sandbox.deleted', sandbox_id: id, sequence: null },
    ]);
    expect(Object.keys(events[0] ?? {})).toEqual([
      ...['event_id', 'event_type', 'sandbox_id', 'sequence', 'timestamp', 'body'],
    ]);
    const cursor: string = first.next_cursor;
    const bad: [string, string][] = [
      ['limit=0', 'limit'],
      ['event_type=agent.event', 'event_type'],
      ['sandbox_id=', 'sandbox_id'],
      ['sandbox_id=%00', 'sandbox_id'],
      ['cursor=', 'cursor'],
      [`cursor=${cursor.slice(0, -1)}`, 'cursor'],
      [`cursor=${cursor.startsWith('A') ? 'B' : 'A'}${cursor.slice(1)}`, 'cursor'],
      [`cursor=${(await reader.get('/api/v1/usage/windows')).data.next_cursor}`, 'cursor'],
      ['colour=red', 'colour'],
    ];
    for (const [query, field] of bad) {
      const { status, error } = await reader.get(`${PATH}?${query}`);
      expect({ query, status, field: error?.details?.field }).toEqual({ query, status: 400, field });
    }
    expect((await other.get(PATH)).data.events).toEqual([]);
    expect((await other.get(`${PATH}?sandbox_id=${id}`)).data.events).toEqual([]);
    expect((await other.get(`${PATH}?cursor=${cursor}`)).error?.details?.field).toBe('cursor');
    expect((await team.get(PATH)).status).toBe(403);
  });

  it('is followed from now on, from a cursor and from the oldest event, each in order', async () => {
    const { client, team } = await startScripted(await fresh());
    const reader = await client('team_1', 'webhooks:read');
    const url = `${reader.url}${PATH}`;
    const id = await team.claim();
    const now = await follow(url, reader.token);
    expect([now.status, now.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    await team.post(`/api/v1/sandboxes/${id}/pause`);
    await team.post(`/api/v1/sandboxes/${id}/resume`);
    const live = await now.next(2);
    expect(live.map(({ event }) => event)).toEqual(['sandbox.paused', 'sandbox.resumed']);
    const { events, next_cursor } = (await reader.get(PATH)).data as {
      events: FeedEvent[];
      next_cursor: string;
    };
    expect(bodiesOf(live)).toEqual(events.slice(1).map(({ body }) => body));
    expect(live[1]?.id).toBe(next_cursor);
    const all = await follow(url, reader.token, { 'last-event-id': '0' });
    expect(bodiesOf(await all.next(3))).toEqual(events.map(({ body }) => body));
    const again = await follow(url, reader.token, { 'last-event-id': live[0]?.id ?? '' });
    expect(await again.next(1)).toEqual(live.slice(1));
    const paused = await follow(`${url}?event_type=sandbox.paused&cursor=${next_cursor}`, reader.token);
    await team.post(`/api/v1/sandboxes/${id}/pause`);
    expect((await paused.next(1))[0]?.event).toBe('sandbox.paused');
    expect((await now.next(1))[0]?.event).toBe('sandbox.paused');
    const damaged = await follow(url, reader.token, { 'last-event-id': 'damaged' });
    expect(damaged.status).toBe(400);
  });
});
