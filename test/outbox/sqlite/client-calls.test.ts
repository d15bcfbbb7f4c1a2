import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { OutboxClient } from '../../../src/outbox/sqlite/client.ts';
import { draft } from '../../support/in-process-store.ts';
import { scratchFolder } from '../../support/scratch.ts';

vi.setConfig({ testTimeout: 30_000 });

const LIMITS = { max_bytes: 2 ** 30, max_records: 100_000, window_ms: 24 * 60 * 60 * 1000 };

async function open(): Promise<OutboxClient> {
  const settings = { state_dir: join(scratchFolder(), 'state'), limits: LIMITS };
  const store = await OutboxClient.open(settings, systemClock, () => {});
  onTestFinished(() => store.close());
  await store.adopt({ sandbox_id: 'sb-1', team_id: 't', secret: '' });
  return store;
}

const append = (store: OutboxClient, payload = '{}') => store.append({ drafts: [draft(payload)] });

/** A store with so many failed records; the first one's event is of another kind than the rest. */
async function withFailed(records: number): Promise<OutboxClient> {
  const store = await open();
  await store.append({ drafts: [{ ...draft(), event_type: 'process.started' }] });
  await store.append({ drafts: Array.from({ length: records - 1 }, () => draft()) });
  const outcome = {
    attempt: 1,
    started_at_ms: 0,
    duration_ms: 1,
    status: 404,
    error: null,
    error_detail: null,
    response_body: null,
  };
  const ids = Array.from({ length: records }, (_, i) => i + 1);
  await Promise.all(ids.map((id) => store.record({ ...outcome, id, decision: { state: 'failed' } })));
  return store;
}

describe('a question', () => {
  it('shows a page of records after a sequence, oldest first', async () => {
    const store = await open();
    for (let i = 1; i <= 5; i++) await append(store, `{"i":${i}}`);
    const page = await store.after(2, 2);
    expect(page.map(({ sequence, event_type }) => [sequence, event_type])).toEqual([
      [3, 'agent.event'],
      [4, 'agent.event'],
    ]);
  });
});

describe('a question about very many records', () => {
  it('lets those who publish come in between: a replay of a whole state', async () => {
    const store = await withFailed(3_000);
    const ended: string[] = [];
    const replayed = store.replayAll('failed').then((count) => {
      ended.push('replay');
      return count;
    });
    await append(store).then(() => ended.push('publish'));
    expect(await replayed).toBe(3_000);
    expect(ended).toEqual(['publish', 'replay']);
    expect(store.counts()).toMatchObject({ pending: 3_001, failed: 0 });
  });

  it('lets those who publish come in between: a list of what is rare', async () => {
    const store = await withFailed(9_000);
    const ended: string[] = [];
    const listed = store.list({ event_type: 'process.started', limit: 10 }).then((page) => {
      ended.push('list');
      return page;
    });
    await append(store).then(() => ended.push('publish'));
    expect(await listed).toMatchObject({ deliveries: [{ sequence: 1 }], next_cursor: null });
    expect(ended).toEqual(['publish', 'list']);
  });

  it('is answered page by page, whatever part a record is found in', async () => {
    const store = await withFailed(4_500);
    await store.append({ drafts: [{ ...draft(), event_type: 'process.started' }] });
    const first = await store.list({ event_type: 'process.started', limit: 1 });
    expect(first).toMatchObject({ deliveries: [{ sequence: 4_501 }], next_cursor: '4501' });
    const second = await store.list({ event_type: 'process.started', limit: 1, before_id: 4_501 });
    expect(second).toMatchObject({ deliveries: [{ sequence: 1 }], next_cursor: null });
    const all = await store.list({ event_type: 'agent.event', limit: 4_499 });
    expect(all.deliveries).toHaveLength(4_499);
    expect(all.next_cursor).toBeNull();
    const failed = await store.list({ event_type: 'agent.event', state: 'failed', limit: 3_000 });
    expect(failed.next_cursor).toBe(String(4_500 - 2_999));
  });
});
