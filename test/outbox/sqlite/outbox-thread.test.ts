import { rmSync, statSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { OutboxClient } from '../../../src/outbox/sqlite/client.ts';
import type { FromWriter } from '../../../src/outbox/sqlite/messages.ts';
import { OutboxThread } from '../../../src/outbox/sqlite/outbox-thread.ts';
import { eventually } from '../../support/eventually.ts';
import { draft } from '../../support/in-process-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';

vi.setConfig({ testTimeout: 30_000 });

const LIMITS = { max_bytes: 2 ** 30, max_records: 100_000, window_ms: 24 * 60 * 60 * 1000 };
const OWNER = { sandbox_id: 'sb-1', team_id: 't', secret: 'whole' };

/** A store that begins in this thread. */
async function open(state_dir = join(scratchFolder(), 'state')) {
  const faults: Error[] = [];
  const fault = (error: Error) => faults.push(error);
  const store = await OutboxClient.open({ state_dir, limits: LIMITS }, systemClock, fault, true);
  onTestFinished(() => store.close());
  await store.adopt(OWNER);
  return { store, state_dir, faults };
}

const append = (store: OutboxClient, payload = '{}') => store.append({ drafts: [draft(payload)] });

describe('a writer that begins in the main thread', () => {
  it('keeps the ready event of a start without a thread', async () => {
    const { store } = await open();
    const ready = { ...draft('{}'), event_type: 'sandbox.ready' as const };
    expect(await store.append({ drafts: [ready] })).toMatchObject({ outcome: 'committed' });
    await store.record({
      id: 1,
      attempt: 1,
      started_at_ms: Date.now(),
      duration_ms: 1,
      status: 204,
      error: null,
      error_detail: null,
      response_body: null,
      decision: { state: 'delivered' },
    });
    expect(store.counts()).toMatchObject({ pending: 0, delivered: 1 });
    expect(store.is_in_thread).toBe(false);
  });

  it('moves with the first publish, and neither repeats nor loses anything', async () => {
    const { store, state_dir, faults } = await open();
    const all = Array.from({ length: 2_000 }, (_, i) => i);
    const sequences: number[] = [];
    for (let i = 0; i < all.length; i += 8) {
      const results = await Promise.all(all.slice(i, i + 8).map((n) => append(store, `{"n":${n}}`)));
      for (const result of results)
        sequences.push(...('records' in result ? result.records : []).map((r) => r.sequence));
    }
    await store.moved;
    expect(store.is_in_thread).toBe(true);
    expect(sequences).toEqual(all.map((i) => i + 1));
    await store.close();
    const again = await open(state_dir);
    expect(again.store.counts().pending).toBe(all.length);
    expect([...faults, ...again.faults]).toEqual([]);
  });

  it('touches no disk in the main thread once the first publish has come', async () => {
    const { store, state_dir } = await open();
    const ready = { ...draft('{}'), event_type: 'sandbox.ready' as const };
    await store.append({ drafts: [ready] });
    const log = statSync(join(state_dir, 'outbox.db-wal'));
    const results = Array.from({ length: 8 }, () => append(store));
    // The thread cannot have begun, and the log is as the start has left it.
    for (let turns = 0; turns < 3; turns++) await promisify(setImmediate)();
    expect(statSync(join(state_dir, 'outbox.db-wal'))).toEqual(log);
    expect(store.is_in_thread).toBe(false);
    expect((await Promise.all(results)).map(({ outcome }) => outcome)).toEqual(Array(8).fill('committed'));
    expect(store.is_in_thread).toBe(true);
    expect(store.counts().pending).toBe(9);
  });

  it('writes in the main thread only once a disk that was at rest has answered', async () => {
    const disk = Promise.withResolvers<void>();
    const clock = new ManualClock();
    const received: string[] = [];
    const state_dir = join(scratchFolder(), 'state');
    const hooks = { onMessage: ({ kind }: FromWriter) => received.push(kind), onFault: () => {} };
    const host = new OutboxThread({ state_dir, limits: LIMITS }, clock, hooks, () => disk.promise);
    onTestFinished(() => host.end());
    host.openHere();
    host.post({ kind: 'call', call: 1, name: 'adopt', input: { ...OWNER, team_id: 't' } });
    await eventually(() => expect(received).toEqual(['answer']));
    await clock.advance(60_000);
    host.post({ kind: 'call', call: 2, name: 'oldestPending', input: null });
    await eventually(() => expect(received).toEqual(['answer', 'answer']));
    const appends = [{ drafts: [draft('{}')] }];
    host.post({ kind: 'batch', batch: 3, appends, outcomes: [], wants_records: false });
    await clock.advance(0);
    await access(state_dir);
    expect(received).toEqual(['answer', 'answer']);
    disk.resolve();
    await eventually(() => expect(received).toEqual(['answer', 'answer', 'done']));
    expect(host.is_in_thread).toBe(false);
  });

  it('opens an outbox in the thread that is too large to be read in memory', async () => {
    const { store, state_dir } = await open();
    await append(store, JSON.stringify({ filler: 'x'.repeat(1_000_000) }));
    await append(store, JSON.stringify({ filler: 'x'.repeat(1_000_000) }));
    await store.close();
    const fault = () => {};
    const again = await OutboxClient.open({ state_dir, limits: LIMITS }, systemClock, fault, true);
    onTestFinished(() => again.close());
    expect([again.is_in_thread, again.counts().pending]).toEqual([true, 2]);
  });

  it('signs after the move as before it, and its clock goes on', async () => {
    const { store } = await open();
    const before_ms = store.now();
    await append(store, '{"before":1}');
    await store.moved;
    expect(store.is_in_thread).toBe(true);
    await append(store, '{"after":1}');
    const { deliveries } = await store.list({ limit: 10 });
    const details = await Promise.all(deliveries.map(({ event_id }) => store.find(event_id)));
    for (const detail of details) expect(detail?.headers).toHaveProperty('X-Service-Signature');
    expect(Math.abs(store.now() - before_ms)).toBeLessThan(20_000);
  });

  it('holds the state directory while the files change hands', async () => {
    const { store, state_dir } = await open();
    const tries: Promise<string>[] = [];
    const post = Worker.prototype.postMessage;
    const posted = vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (
      this: Worker,
      message,
    ) {
      // The files are closed here and not yet open there.
      if (message.kind === 'open') {
        const other = OutboxClient.open({ state_dir, limits: LIMITS }, systemClock, () => {}, true);
        tries.push(
          other.then(
            () => 'opened',
            (error: Error) => error.message,
          ),
        );
      }
      post.call(this, message);
    });
    onTestFinished(() => posted.mockRestore());
    await append(store);
    await store.moved;
    expect(await Promise.all(tries)).toEqual([expect.stringContaining('is in use by another sandboxd')]);
    expect(await append(store)).toMatchObject({ outcome: 'committed' });
  });

  it('writes its files anew where they were removed before the move', async () => {
    const { store, state_dir } = await open();
    const mended: string[] = [];
    store.onMended(({ how }) => mended.push(how));
    const ready = { ...draft('{"n":1}'), event_type: 'sandbox.ready' as const };
    await store.append({ drafts: [ready] });
    rmSync(state_dir, { recursive: true });
    await append(store, '{"n":3}');
    expect(store.is_in_thread).toBe(true);
    await append(store, '{"n":2}');
    expect(mended).toEqual(['restored']);
    expect(store.counts().pending).toBe(3);
    await store.close();
    expect((await open(state_dir)).store.counts().pending).toBe(3);
  });

  it('holds what arrives while it closes', async () => {
    const { store, state_dir } = await open();
    const results = Array.from({ length: 20 }, () => append(store));
    await store.close();
    expect((await Promise.all(results)).map(({ outcome }) => outcome)).toEqual(Array(20).fill('committed'));
    expect((await open(state_dir)).store.counts().pending).toBe(20);
  });
});
