import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { OutboxClient } from '../../../src/outbox/sqlite/client.ts';
import type { DueRecord } from '../../../src/outbox/store.ts';
import { draft } from '../../support/in-process-store.ts';
import { scratchFolder } from '../../support/scratch.ts';

vi.setConfig({ testTimeout: 30_000 });

const LIMITS = { max_bytes: 2 ** 30, max_records: 100_000, window_ms: 24 * 60 * 60 * 1000 };

async function open(state_dir: string, sandbox_id = 'sb-1') {
  const faults: Error[] = [];
  const store = await OutboxClient.open({ state_dir, limits: LIMITS }, systemClock, (error) =>
    faults.push(error),
  );
  onTestFinished(() => store.close());
  const adoption = await store.adopt({ sandbox_id, team_id: 't', secret: '' });
  return { store, adoption, faults };
}

const append = (store: OutboxClient, payload = '{}') => store.append({ drafts: [draft(payload)] });

/** The files as a death by SIGKILL leaves them: what is in the log is not yet in the database. */
async function leftBehind(records: number): Promise<string> {
  const [alive, dead] = [join(scratchFolder(), 'alive'), join(scratchFolder(), 'dead')];
  const { store } = await open(alive);
  for (let i = 0; i < records; i++) await append(store, `{"i":${i}}`);
  cpSync(alive, dead, { recursive: true });
  return dead;
}

/** A store with this many failed records; the first one's event is of another type than the rest. */
async function withFailed(records: number): Promise<OutboxClient> {
  const { store } = await open(join(scratchFolder(), 'state'));
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

describe('the store over its thread', () => {
  it('acknowledges appends in the order of their sequences', async () => {
    const { store } = await open(join(scratchFolder(), 'state'));
    const results = await Promise.all(Array.from({ length: 200 }, (_, i) => append(store, `{"i":${i}}`)));
    const sequences = results.map((result) => ('records' in result ? result.records[0]?.sequence : 0));
    expect(sequences).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
    expect(store.counts().pending).toBe(200);
    expect(await store.lastSequence()).toBe(200);
  });

  it('hands committed records to whoever has room, and else says that there are some', async () => {
    const { store } = await open(join(scratchFolder(), 'state'));
    const seen: (DueRecord[] | null)[] = [];
    let has_room = true;
    store.onRecordsAdded({
      hasRoom: () => has_room,
      onAdded: (records) => seen.push(records),
    });
    await append(store, '{"a":1}');
    has_room = false;
    await append(store, '{"a":2}');
    expect(seen).toEqual([[expect.objectContaining({ id: 1, attempts: 0 })], null]);
  });

  it('says that there are some, too, where a commit has more of them than is kept in memory together', async () => {
    const { store } = await open(join(scratchFolder(), 'state'));
    const seen: (DueRecord[] | null)[] = [];
    store.onRecordsAdded({
      hasRoom: () => true,
      onAdded: (records) => seen.push(records),
    });
    const large = JSON.stringify({ text: 'x'.repeat(600_000) });
    await Promise.all([append(store, large), append(store, large)]);
    await append(store, large);
    expect(seen).toEqual([null, [expect.objectContaining({ id: 3 })]]);
    const { records, more } = await store.untried(0, 10);
    expect([records.map(({ id }) => id), more]).toEqual([[1, 2], true]);
  });

  it('keeps outcomes and tells when they are on disk', async () => {
    const { store } = await open(join(scratchFolder(), 'state'));
    await append(store);
    await store.record({
      id: 1,
      attempt: 1,
      started_at_ms: Date.now(),
      duration_ms: 12.4,
      status: 503,
      error: null,
      error_detail: '503 Busy',
      response_body: 'no\0t now',
      decision: { state: 'pending', due_ms: store.now() + 500, probe_ms: store.now() + 500 },
    });
    const [view] = (await store.list({ limit: 10 })).deliveries;
    const detail = await store.find(view?.event_id ?? '');
    expect(detail?.attempts).toMatchObject([
      {
        attempt: 1,
        status: 503,
        duration_ms: 12,
        error_detail: '503 Busy',
        response_body: 'no\0t now',
        error: null,
      },
    ]);
    expect(Date.parse(detail?.next_attempt_at ?? '')).toBeGreaterThan(Date.now() - 60_000);
  });

  it('takes only as many appends a turn as it is told, the rest in the next, in order', async () => {
    const { store } = await open(join(scratchFolder(), 'state'));
    const sizes: number[] = [];
    store.onCommitMeasured(({ batch_size }) => sizes.push(batch_size));
    store.paceAppends(() => 3);
    const results = await Promise.all(Array.from({ length: 10 }, () => append(store)));
    expect(results.map((result) => ('records' in result ? result.records[0]?.sequence : 0))).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ]);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(10);
  });

  it('keeps what was appended before the close, and takes nothing after it', async () => {
    const state_dir = join(scratchFolder(), 'state');
    const { store } = await open(state_dir);
    const last = append(store, '{"last":true}');
    await store.close();
    expect((await last).outcome).toBe('committed');
    expect((await append(store)).outcome).toBe('unavailable');
    await store.close();
    const again = await open(state_dir);
    expect(again.store.counts().pending).toBe(1);
    expect(readdirSync(state_dir).toSorted()).toEqual(
      expect.arrayContaining(['high-water', 'lock', 'outbox.db']),
    );
  });
});

describe('the state directory', () => {
  it('has one owner: a second open is refused by name', async () => {
    const state_dir = join(scratchFolder(), 'state');
    await open(state_dir);
    await expect(open(state_dir)).rejects.toThrow(/state directory .* is in use by another sandboxd/);
  });

  it('is refused where it, or a file in it, is a link', async () => {
    const folder = scratchFolder();
    const { store } = await open(join(folder, 'real'));
    await store.close();
    symlinkSync(join(folder, 'real'), join(folder, 'link'));
    await expect(open(join(folder, 'link'))).rejects.toThrow(/links are refused/);
    rmSync(join(folder, 'real', 'outbox.db'));
    symlinkSync('/etc/hostname', join(folder, 'real', 'outbox.db'));
    await expect(open(join(folder, 'real'))).rejects.toThrow(/links are refused/);
  });
});

describe('after a death', () => {
  it('everything acknowledged is there, and nothing is missing', async () => {
    const { store, adoption } = await open(await leftBehind(25));
    expect(adoption).toMatchObject({ lost_records: 0, missing_records: 0, set_aside: null });
    expect(store.counts().pending).toBe(25);
  });

  it.each<[string, (state_dir: string) => void]>([
    [
      'the head of the database is junk',
      (dir) => overwrite(join(dir, 'outbox.db'), 0, Buffer.alloc(100, 0x5a)),
    ],
    ['the database is empty', (dir) => writeFileSync(join(dir, 'outbox.db'), '')],
    ['the log is gone', (dir) => rmSync(join(dir, 'outbox.db-wal'))],
    ['the log is cut', (dir) => cut(join(dir, 'outbox.db-wal'), 0.6)],
    ['a byte of the log is changed', (dir) => flip(join(dir, 'outbox.db-wal'), 0.5)],
  ])('and %s: it goes on, and what is missing is told or nothing is', async (_, damage) => {
    const state_dir = await leftBehind(25);
    damage(state_dir);
    const { store, adoption } = await open(state_dir);
    const kept = store.counts().pending;
    expect(kept + adoption.missing_records).toBe(25);
    const result = await append(store, '{"after":true}');
    expect(result).toMatchObject({ outcome: 'committed', records: [{ sequence: 26 }] });
  });
});

function overwrite(path: string, at: number, bytes: Buffer): void {
  const content = readFileSync(path);
  bytes.copy(content, at);
  writeFileSync(path, content);
}

function cut(path: string, part: number): void {
  const content = readFileSync(path);
  writeFileSync(path, content.subarray(0, Math.floor(content.length * part)));
}

function flip(path: string, part: number): void {
  const content = readFileSync(path);
  const at = Math.floor(content.length * part);
  content[at] = (content[at] ?? 0) ^ 1;
  writeFileSync(path, content);
}

describe('a question', () => {
  it('shows a page of records after a sequence, oldest first', async () => {
    const { store } = await open(join(scratchFolder(), 'state'));
    for (let i = 1; i <= 5; i++) await append(store, `{"i":${i}}`);
    const page = await store.after(2, 2);
    expect(page.map(({ sequence, event_type }) => [sequence, event_type])).toEqual([
      [3, 'agent.event'],
      [4, 'agent.event'],
    ]);
  });

  it('shows no more of large records at once than a reader should have to keep', async () => {
    const { store } = await open(join(scratchFolder(), 'state'));
    for (let i = 1; i <= 5; i++) await append(store, JSON.stringify({ i, fill: 'x'.repeat(200_000) }));
    const pages = [await store.after(0, 200), await store.after(2, 200), await store.after(4, 200)];
    expect(pages.map((page) => page.map(({ sequence }) => sequence))).toEqual([[1, 2], [3, 4], [5]]);
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
