import { describe, expect, it } from 'vitest';
import type { EventType } from '../../../../src/contract/events.ts';
import { isAuthentic, recordKey } from '../../../../src/outbox/sqlite/rows/record-mac.ts';
import type { SqliteStore } from '../../../../src/outbox/sqlite/rows/sqlite-store.ts';
import { draft, openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { change, keep, settle } from '../../../support/outbox/rows.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const KEY = '5a'.repeat(32);

/** Commits an event of the sandbox's own life, as the daemon does; `unsent` where nobody is to receive it. */
function live(rows: SqliteStore, event_type: EventType, key: string, unsent?: true) {
  const own = { event_type, happened_at_ms: 0, payload: '{}', idempotency_key: ` sandbox.${key}`, unsent };
  return change(rows, () => rows.added.append({ drafts: [own] }));
}

const typesOf = (rows: SqliteStore, after = 0, limit = 100) =>
  rows.lifecycle.after(after, limit).map(({ sequence, event_type }) => [sequence, event_type]);

describe("the sandbox's own records", () => {
  it('are read in order after a sequence, with what authenticates them, and no others among them', () => {
    const { rows } = openRows(new ManualClock(), { record_key: KEY });
    live(rows, 'sandbox.ready', 'b');
    change(rows, () => rows.added.append({ drafts: [draft('{}', ' sandbox.agent')] }));
    live(rows, 'sandbox.paused', 'a');
    live(rows, 'sandbox.resumed', 'c');
    expect(typesOf(rows, 1)).toEqual([
      [3, 'sandbox.paused'],
      [4, 'sandbox.resumed'],
    ]);
    expect(typesOf(rows, 0, 1)).toEqual([[1, 'sandbox.ready']]);
    const key = recordKey(KEY) as Buffer;
    expect(rows.lifecycle.after(0, 9).map((row) => isAuthentic(key, row))).toEqual([true, true, true]);
  });

  it('have no delivery where nobody is to receive them, but a sequence, and end what a key repeats', () => {
    const { rows, db } = openRows(new ManualClock(), { record_key: KEY, max_records: 0 });
    live(rows, 'sandbox.ready', 'a', true);
    expect(live(rows, 'sandbox.ready', 'b', true)).toEqual({ outcome: 'unneeded' });
    expect(live(rows, 'sandbox.killed', 'c', true)).toMatchObject({ records: [{ sequence: 2 }] });
    expect(live(rows, 'sandbox.killed', 'c', true)).toMatchObject({ outcome: 'repeated' });
    expect(db.prepare('SELECT count(*) FROM deliveries').pluck().get()).toBe(0);
    expect(rows.counts()).toEqual({ pending: 0, delivered: 0, failed: 0, expired: 0, foreign: 0, bytes: 0 });
    expect(typesOf(rows)).toEqual([
      [1, 'sandbox.ready'],
      [2, 'sandbox.killed'],
    ]);
  });

  it('outlive their delivery, until there are 1 000 newer ones', () => {
    const { rows, db } = openRows(new ManualClock(), { record_key: KEY });
    live(rows, 'sandbox.ready', 'a');
    change(rows, () => rows.added.append({ drafts: [draft()] }));
    for (const id of [1, 2]) settle(rows, id, { state: 'delivered' });
    change(rows, () => rows.finished.prune(keep('delivered', -1, 0), 10));
    expect([rows.counts().delivered, typesOf(rows)]).toEqual([0, [[1, 'sandbox.ready']]]);
    for (let n = 0; n < 999; n++) live(rows, 'sandbox.resumed', `n${n}`, true);
    expect(typesOf(rows, 0, 1)).toEqual([[1, 'sandbox.ready']]);
    live(rows, 'sandbox.paused', 'b', true);
    expect(typesOf(rows, 0, 2_000)).toHaveLength(1_000);
    expect(db.prepare('SELECT count(*) FROM records').pluck().get()).toBe(1_000);
  });

  it('are not told where another program has written them, nor without a record key', () => {
    const { rows, db } = openRows(new ManualClock(), { record_key: KEY });
    live(rows, 'sandbox.ready', 'a', true);
    live(rows, 'sandbox.paused', 'b', true);
    db.prepare("UPDATE records SET event_type = 'sandbox.killed' WHERE id = 1").run();
    expect(typesOf(rows)).toEqual([[2, 'sandbox.paused']]);
    const keyless = openRows(new ManualClock());
    live(keyless.rows, 'sandbox.ready', 'a');
    expect(typesOf(keyless.rows)).toEqual([]);
  });

  it('are not told of the parent of a fork, nor kept for it', () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const parent = openRows(clock, { state_dir, sandbox_id: 'parent', record_key: KEY });
    live(parent.rows, 'sandbox.ready', 'a', true);
    live(parent.rows, 'sandbox.paused', 'b');
    parent.db.close();
    const child = openRows(clock, { state_dir, sandbox_id: 'child', record_key: KEY.replaceAll('5', '6') });
    expect(child.db.prepare('SELECT id FROM records').pluck().all()).toEqual([2]);
    live(child.rows, 'sandbox.ready', 'a', true);
    expect(typesOf(child.rows)).toEqual([[1, 'sandbox.ready']]);
  });

  it('are found by an index, however many records there are', () => {
    const { db } = openRows(new ManualClock());
    const plans = db
      .prepare(
        `EXPLAIN QUERY PLAN SELECT id FROM records WHERE sandbox_id = 'a' AND idempotency_key IS NOT NULL
          AND idempotency_key >= ' sandbox.' AND idempotency_key < ' sandbox/'`,
      )
      .all() as { detail: string }[];
    expect(plans[0]?.detail).toMatch(/SEARCH records USING .*INDEX records_idempotency_key/);
  });
});
