import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { EventType } from '../../../../src/contract/events.ts';
import type { Keep } from '../../../../src/outbox/sqlite/rows/finished-records.ts';
import type { SqliteStore } from '../../../../src/outbox/sqlite/rows/sqlite-store.ts';
import type { AppendResult, AttemptOutcome } from '../../../../src/outbox/store.ts';
import type { Decision } from '../../../../src/webhook/retry.ts';
import { verify } from '../../../../src/webhook/signature.ts';
import { draft, openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { scratchFolder } from '../../../support/scratch.ts';

vi.setConfig({ testTimeout: 60_000 });

const HOUR_MS = 60 * 60 * 1000;

function change<Result>(rows: SqliteStore, make: () => Result): Result {
  rows.begin();
  const result = make();
  rows.commit();
  return result;
}

function append(rows: SqliteStore, ...payloads: string[]): AppendResult {
  return change(rows, () => rows.added.append({ drafts: payloads.map((payload) => draft(payload)) }));
}

function idsOf(result: AppendResult): string[] {
  return 'records' in result ? result.records.map(({ event_id }) => event_id) : [];
}

function sequencesOf(result: AppendResult): number[] {
  return 'records' in result ? result.records.map(({ sequence }) => sequence) : [];
}

function settle(rows: SqliteStore, id: number, decision: Decision, attempt = 1): void {
  const outcome: AttemptOutcome = {
    ...{ id, attempt, started_at_ms: 0, duration_ms: 1, status: 200, error: null, response_body: null },
    decision,
  };
  change(rows, () => rows.outcomes.record(outcome));
}

function keep(state: Keep['state'], keep_ms: number, keep_records: number, keep_bytes = 2 ** 40): Keep {
  return { state, keep_ms, keep_records, keep_bytes };
}

function event(event_type: EventType, payload = '{}') {
  return { drafts: [{ event_type, happened_at_ms: 0, payload }] };
}

describe('appending', () => {
  it('gives sequences in the order of the commits, without gaps, and ids that never repeat', () => {
    const { rows } = openRows(new ManualClock());
    const results = [append(rows, '{}', '{}'), append(rows, '{}'), append(rows, '{}', '{}', '{}')];
    expect(results.flatMap(sequencesOf)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(new Set(results.flatMap(idsOf)).size).toBe(6);
  });

  it('keeps the body that is sent, signed over its bytes', () => {
    const { rows } = openRows(new ManualClock(), { secret: 'made for this test' });
    append(rows, '{ "price": 1.10, "text":"ü🦊" }');
    const [record] = rows.backlog.untried(0, 10).records;
    expect(record?.body).toContain('"payload":{ "price": 1.10, "text":"ü🦊" }}');
    expect(JSON.parse(record?.body ?? '')).toMatchObject({
      event_id: record?.event_id,
      sandbox_id: 'sb-1',
      team_id: 'team-1',
      sequence: 1,
    });
    expect(verify('made for this test', record?.body ?? '', record?.headers['X-Service-Signature'])).toBe(
      true,
    );
  });

  it('leaves nothing behind after a rollback: neither rows, counts, sequences nor keys', () => {
    const { rows, db } = openRows(new ManualClock());
    append(rows, '{}');
    const counts = rows.counts();
    rows.begin();
    rows.added.append({ drafts: [draft('{"a":1}', 'key'), draft()] });
    rows.added.append(event('sandbox.ready'));
    rows.rollback();
    expect(rows.counts()).toEqual(counts);
    expect(rows.is_ready).toBe(false);
    expect(db.prepare('SELECT count(*) FROM records').pluck().get()).toBe(1);
    expect(sequencesOf(change(rows, () => rows.added.append({ drafts: [draft('{"b":2}', 'key')] })))).toEqual(
      [2],
    );
  });

  it('makes rows that a new process finds, counts and numbers going on', () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const first = openRows(clock, { state_dir });
    append(first.rows, '{}', '{}');
    settle(first.rows, 1, { state: 'delivered' });
    first.db.close();
    const { rows } = openRows(clock, { state_dir });
    expect(rows.counts()).toMatchObject({ pending: 1, delivered: 1 });
    expect(rows.backlog.untried(0, 10).records.map(({ id }) => id)).toEqual([2]);
    expect(sequencesOf(append(rows, '{}'))).toEqual([3]);
  });

  it('of a sandbox.ready is unneeded while the sandbox is known to be up, and needed again after its end', () => {
    const { rows } = openRows(new ManualClock());
    const offer = (type: EventType) => change(rows, () => rows.added.append(event(type))).outcome;
    expect([
      offer('sandbox.ready'),
      offer('sandbox.ready'),
      offer('sandbox.killed'),
      offer('sandbox.ready'),
    ]).toEqual(['committed', 'unneeded', 'committed', 'committed']);
  });
});

describe('an idempotency key', () => {
  const offer = (rows: SqliteStore, payload: string, key: string) =>
    change(rows, () => rows.added.append({ drafts: [draft(payload, key)] }));

  it('used again with the same payload gives the first record, also in the same transaction', () => {
    const { rows } = openRows(new ManualClock());
    rows.begin();
    const first = rows.added.append({ drafts: [draft('{"a":1}', 'k')] });
    const second = rows.added.append({ drafts: [draft('{"a":1}', 'k')] });
    rows.commit();
    expect(first.outcome).toBe('committed');
    expect(second).toEqual({ ...first, outcome: 'repeated' });
    expect(offer(rows, '{"a":1}', 'k')).toEqual(second);
    expect(rows.counts().pending).toBe(1);
  });

  it('used again with other bytes is a conflict, however alike they are', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (left, right) => {
        const texts = [JSON.stringify({ v: left }), JSON.stringify({ v: right })] as const;
        const { rows, db } = openRows(new ManualClock());
        offer(rows, texts[0], 'k');
        expect(offer(rows, texts[1], 'k').outcome).toBe(texts[0] === texts[1] ? 'repeated' : 'conflict');
        expect(offer(rows, ` ${texts[0]}`, 'k').outcome).toBe('conflict');
        db.close();
      }),
      { numRuns: 15 },
    );
    const { rows } = openRows(new ManualClock());
    offer(rows, '{"payload":{}}', 'k');
    expect(offer(rows, '{}', 'k').outcome).toBe('conflict');
    expect(offer(rows, `{"long":"${'x'.repeat(5_000)}"}`, 'k').outcome).toBe('conflict');
  });

  it('is kept as long as its record', () => {
    const clock = new ManualClock();
    const { rows } = openRows(clock);
    offer(rows, '{"a":1}', 'k');
    settle(rows, 1, { state: 'delivered' });
    expect(offer(rows, '{"a":1}', 'k').outcome).toBe('repeated');
    change(rows, () => rows.finished.prune(keep('delivered', -1, 0), 10));
    expect(offer(rows, '{"a":2}', 'k').outcome).toBe('committed');
  });
});

describe('the bounds', () => {
  it('refuse publishes and file events when so many records are undelivered, and lifecycle events 1 000 later', () => {
    const { rows, db } = openRows(new ManualClock(), { max_records: 3 });
    db.pragma('synchronous = OFF');
    const offer = (type: EventType) => change(rows, () => rows.added.append(event(type))).outcome;
    expect(append(rows, '{}', '{}', '{}').outcome).toBe('committed');
    expect([offer('agent.event'), offer('file.modified')]).toEqual(['full', 'full']);
    const reserve = Array.from({ length: 1_002 }, () => offer('process.started'));
    expect(reserve.filter((outcome) => outcome === 'committed')).toHaveLength(1_000);
    expect(offer('sandbox.killed')).toBe('full');
  });

  it('leave the second half to those who publish: file events use no more than the first', () => {
    const by_number = openRows(new ManualClock(), { max_records: 4 }).rows;
    const offer = (rows: SqliteStore, type: EventType, payload?: string) =>
      change(rows, () => rows.added.append(event(type, payload))).outcome;
    const files = [1, 2, 3].map(() => offer(by_number, 'file.modified'));
    expect(files).toEqual(['committed', 'committed', 'full']);
    const publishes = [1, 2, 3].map(() => offer(by_number, 'agent.event'));
    expect(publishes).toEqual(['committed', 'committed', 'full']);
    const by_bytes = openRows(new ManualClock(), { max_bytes: 10_000 }).rows;
    const payload = `{"text":"${'x'.repeat(3_000)}"}`;
    const large = [1, 2, 3].map(() => offer(by_bytes, 'file.modified', payload));
    expect(large).toEqual(['committed', 'committed', 'full']);
    expect(offer(by_bytes, 'agent.event', payload)).toBe('committed');
  });

  it('take all drafts of an append or none', () => {
    const { rows } = openRows(new ManualClock(), { max_records: 3 });
    expect(append(rows, '{}', '{}').outcome).toBe('committed');
    expect(append(rows, '{}', '{}').outcome).toBe('full');
    expect(rows.counts().pending).toBe(2);
  });

  it('count what is undelivered, failed and expired included, and not what is delivered', () => {
    const { rows } = openRows(new ManualClock(), { max_records: 3 });
    append(rows, '{}', '{}', '{}');
    settle(rows, 1, { state: 'failed' });
    settle(rows, 2, { state: 'expired' });
    expect(append(rows, '{}').outcome).toBe('full');
    settle(rows, 3, { state: 'delivered' });
    expect(append(rows, '{}').outcome).toBe('committed');
  });

  it('hold for bytes, and a delivery makes room', () => {
    const { rows } = openRows(new ManualClock(), { max_bytes: 5_000 });
    const payload = `{"text":"${'x'.repeat(1_000)}"}`;
    let taken = 0;
    while (append(rows, payload).outcome === 'committed') taken += 1;
    expect(taken).toBeLessThanOrEqual(5);
    expect(change(rows, () => rows.added.append(event('process.exited'))).outcome).toBe('committed');
    for (let id = 1; id <= taken; id++) settle(rows, id, { state: 'delivered' });
    expect(append(rows, payload).outcome).toBe('committed');
  });

  it('for bytes end the reserve, too: a process that restarts for ever does not fill the disk', () => {
    const { rows, db } = openRows(new ManualClock(), { max_bytes: 1_000 });
    db.pragma('synchronous = OFF');
    const payload = `{"text":"${'x'.repeat(500_000)}"}`;
    const outcomes = Array.from(
      { length: 60 },
      () => change(rows, () => rows.added.append(event('process.exited', payload))).outcome,
    );
    expect(outcomes).toContain('full');
  });
});

describe('reading the backlog', () => {
  it('gives records in commit order, a part at a time', () => {
    const { rows } = openRows(new ManualClock());
    append(rows, ...Array(7).fill('{}'));
    const first = rows.backlog.untried(0, 3);
    expect(first).toMatchObject({ more: true, records: [{ id: 1 }, { id: 2 }, { id: 3 }] });
    expect(rows.backlog.untried(3, 4)).toMatchObject({
      more: false,
      records: [{ id: 4 }, { id: 5 }, { id: 6 }, { id: 7 }],
    });
  });

  it('reads at most some mebibytes at once, however large the records are, and at least one', () => {
    const { rows } = openRows(new ManualClock());
    const payload = `{"text":"${'x'.repeat(1_000_000)}"}`;
    append(rows, ...Array(12).fill(payload));
    const seen: number[] = [];
    for (let more = true; more; ) {
      const page = rows.backlog.untried(seen.at(-1) ?? 0, 256);
      expect(page.records.length).toBeLessThanOrEqual(5);
      seen.push(...page.records.map(({ id }) => id));
      more = page.more;
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  it('tells due retries, overdue ones and when the next are', async () => {
    const clock = new ManualClock();
    const { rows } = openRows(clock, { window_ms: 60_000 });
    append(rows, '{}', '{}', '{}');
    const now_ms = rows.now();
    settle(rows, 2, { state: 'pending', due_ms: now_ms + 500, probe_ms: now_ms + 100 });
    settle(rows, 3, { state: 'pending', due_ms: now_ms + 2_000, probe_ms: now_ms + 50 });
    expect(rows.backlog.due(10)).toEqual({ records: [], next_due_ms: now_ms + 500 });
    expect(rows.backlog.probeCandidate([])?.id).toBe(3);
    expect(rows.backlog.probeCandidate([3])?.id).toBe(2);
    expect(rows.backlog.probeCandidate([3, 2])).toBeNull();
    await clock.advance(500);
    expect(rows.backlog.due(10)).toMatchObject({
      records: [{ id: 2, attempts: 1, failures: 1 }],
      next_due_ms: now_ms + 2_000,
    });
    expect(rows.backlog.overdue(10)).toEqual({ records: [], next_deadline_ms: now_ms + 60_000 });
    await clock.advance(60_000);
    expect(
      rows.backlog
        .overdue(10)
        .records.map(({ id }) => id)
        .toSorted(),
    ).toEqual([2, 3]);
    expect(rows.backlog.untried(0, 10).records.map(({ id }) => id)).toEqual([1]);
  });
});

describe('an outcome', () => {
  it('of a record that is no longer pending changes nothing', () => {
    const { rows } = openRows(new ManualClock());
    append(rows, '{}');
    settle(rows, 1, { state: 'delivered' });
    const counts = rows.counts();
    settle(rows, 1, { state: 'failed' }, 2);
    settle(rows, 999, { state: 'delivered' });
    expect(rows.counts()).toEqual(counts);
  });
});

describe('another sandbox', () => {
  it("finds the first one's records set aside, and numbers and keys new", () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const parent = openRows(clock, { state_dir, sandbox_id: 'parent' });
    change(parent.rows, () =>
      parent.rows.added.append({ drafts: [draft('{}', 'k'), draft(), draft(), draft()] }),
    );
    settle(parent.rows, 1, { state: 'delivered' });
    settle(parent.rows, 2, { state: 'failed' });
    const parent_ids = parent.rows.backlog.untried(0, 10).records.map(({ event_id }) => event_id);
    parent.db.close();
    const { rows } = openRows(clock, { state_dir, sandbox_id: 'child' });
    expect(rows.counts()).toEqual({ pending: 0, delivered: 0, failed: 0, expired: 0, foreign: 4, bytes: 0 });
    expect(rows.backlog.untried(0, 10).records).toEqual([]);
    const first = change(rows, () => rows.added.append({ drafts: [draft('{"other":1}', 'k')] }));
    expect(sequencesOf(first)).toEqual([1]);
    expect([rows.idBefore(0), rows.idBefore(1)]).toEqual([4, 5]);
    expect(rows.finished.replay(parent_ids[0] as string)).toBe(false);
    expect(rows.backlog.untried(0, 10).records.map(({ id }) => id)).toEqual([5]);
  });

  it('leaves what was pending to the one that comes back: its states, numbers and keys are as it left them', () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const first = openRows(clock, { state_dir, sandbox_id: 'sb-1' });
    change(first.rows, () =>
      first.rows.added.append({ drafts: [draft('{"n":1}', 'k'), draft(), draft(), draft()] }),
    );
    settle(first.rows, 2, { state: 'delivered' });
    settle(first.rows, 3, { state: 'pending', due_ms: first.rows.now() + 5, probe_ms: first.rows.now() + 5 });
    const counts = first.rows.counts();
    first.db.close();
    const other = openRows(clock, { state_dir, sandbox_id: '' });
    append(other.rows, '{}', '{}');
    expect(other.rows.counts()).toMatchObject({ pending: 2, foreign: 4 });
    expect(other.rows.foreignPending()).toBe(3);
    other.db.close();
    const { rows } = openRows(clock, { state_dir, sandbox_id: 'sb-1' });
    expect(rows.counts()).toEqual({ ...counts, foreign: 2 });
    expect(rows.backlog.untried(0, 10).records.map(({ id }) => id)).toEqual([1, 4]);
    expect(rows.backlog.due(10).next_due_ms).not.toBeNull();
    const offer = (payload: string) =>
      change(rows, () => rows.added.append({ drafts: [draft(payload, 'k')] })).outcome;
    expect([offer('{"n":1}'), offer('{"n":2}')]).toEqual(['repeated', 'conflict']);
    expect(sequencesOf(append(rows, '{}'))).toEqual([5]);
  });

  it('has its records removed after a retention that counts from when it left, and its numbers are kept', async () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const first = openRows(clock, { state_dir, sandbox_id: 'sb-1' });
    append(first.rows, '{}', '{}', '{}');
    settle(first.rows, 1, { state: 'delivered' });
    first.db.close();
    const { rows, db } = openRows(clock, { state_dir, sandbox_id: 'sb-2' });
    append(rows, '{}');
    const retention = { delivered_ms: HOUR_MS, all_ms: 5 * HOUR_MS };
    const prune = () => change(rows, () => rows.finished.pruneForeign(retention, 10));
    expect(rows.finished.hasPrunableForeign(retention)).toBe(false);
    await clock.advance(HOUR_MS);
    expect([prune(), prune()]).toEqual([1, 0]);
    await clock.advance(4 * HOUR_MS);
    expect([prune(), prune()]).toEqual([2, 0]);
    expect(rows.counts()).toMatchObject({ pending: 1, foreign: 0 });
    db.close();
    const again = openRows(clock, { state_dir, sandbox_id: 'sb-1' });
    expect(again.rows.counts()).toMatchObject({ pending: 0, delivered: 0, failed: 0, foreign: 1 });
    expect(sequencesOf(append(again.rows, '{}'))).toEqual([4]);
  });

  it('is not what the same one is after a restart', () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const first = openRows(clock, { state_dir });
    append(first.rows, '{}');
    first.db.close();
    expect(openRows(clock, { state_dir }).rows.counts()).toMatchObject({ pending: 1, foreign: 0 });
  });
});

describe('a replay', () => {
  it('makes a finished record pending with the same bytes and a new window, its attempts going on', async () => {
    const clock = new ManualClock();
    const { rows } = openRows(clock, { window_ms: HOUR_MS });
    const [event_id = ''] = idsOf(append(rows, '{"a":1.10}'));
    const before = rows.backlog.untried(0, 1).records[0];
    settle(rows, 1, { state: 'failed' }, 3);
    await clock.advance(5 * HOUR_MS);
    expect(change(rows, () => rows.finished.replay(event_id))).toBe(true);
    const { records } = rows.backlog.due(10);
    expect(records).toMatchObject([{ id: 1, attempts: 3, failures: 0, deadline_ms: rows.now() + HOUR_MS }]);
    expect(records[0]?.body).toBe(before?.body);
    expect(records[0]?.headers).toEqual(before?.headers);
    expect(rows.counts()).toMatchObject({ pending: 1, failed: 0 });
  });

  it('leaves a pending record as it is and knows no other', () => {
    const { rows } = openRows(new ManualClock());
    const [event_id = ''] = idsOf(append(rows, '{}'));
    expect(change(rows, () => rows.finished.replay(event_id))).toBe(true);
    expect(rows.backlog.untried(0, 10).records).toHaveLength(1);
    expect(change(rows, () => rows.finished.replay('evt_x'))).toBe(false);
  });

  it('of a delivered record counts its bytes again', () => {
    const { rows } = openRows(new ManualClock());
    const [event_id = ''] = idsOf(append(rows, '{}'));
    const { bytes } = rows.counts();
    settle(rows, 1, { state: 'delivered' });
    expect(rows.counts().bytes).toBe(0);
    change(rows, () => rows.finished.replay(event_id));
    expect(rows.counts().bytes).toBe(bytes);
  });
});

describe('pruning', () => {
  it('removes what was kept long enough, oldest first, a part at a time', async () => {
    const clock = new ManualClock();
    const { rows, db } = openRows(clock);
    append(rows, ...Array(10).fill('{}'));
    for (let id = 1; id <= 6; id++) settle(rows, id, { state: 'delivered' });
    await clock.advance(HOUR_MS);
    for (let id = 7; id <= 8; id++) settle(rows, id, { state: 'delivered' });
    expect(rows.finished.hasPrunable(keep('delivered', HOUR_MS, 100))).toBe(true);
    expect(change(rows, () => rows.finished.prune(keep('delivered', HOUR_MS, 100), 4))).toBe(4);
    expect(change(rows, () => rows.finished.prune(keep('delivered', HOUR_MS, 100), 4))).toBe(2);
    expect(rows.finished.hasPrunable(keep('delivered', HOUR_MS, 100))).toBe(false);
    expect(rows.counts()).toMatchObject({ delivered: 2, pending: 2 });
    expect(db.prepare('SELECT id FROM records ORDER BY id').pluck().all()).toEqual([7, 8, 9, 10]);
    expect(db.prepare('SELECT count(*) FROM attempts').pluck().get()).toBe(2);
  });

  it('removes the surplus over a number of records', () => {
    const { rows } = openRows(new ManualClock());
    append(rows, ...Array(5).fill('{}'));
    for (let id = 1; id <= 5; id++) settle(rows, id, { state: 'delivered' });
    expect(change(rows, () => rows.finished.prune(keep('delivered', HOUR_MS, 2), 100))).toBe(3);
    expect(rows.counts().delivered).toBe(2);
  });

  it('removes delivered records, oldest first, until the rest takes no more than it may', () => {
    const { rows, db } = openRows(new ManualClock());
    const payload = `{"text":"${'x'.repeat(10_000)}"}`;
    append(rows, ...Array(6).fill(payload));
    for (let id = 1; id <= 5; id++) settle(rows, id, { state: 'delivered' });
    const rule = keep('delivered', HOUR_MS, 100, 25_000);
    expect(rows.finished.hasPrunable(rule)).toBe(true);
    expect(change(rows, () => rows.finished.prune(rule, 2))).toBe(2);
    expect(change(rows, () => rows.finished.prune(rule, 100))).toBe(1);
    expect(rows.finished.hasPrunable(rule)).toBe(false);
    expect(db.prepare('SELECT id FROM records ORDER BY id').pluck().all()).toEqual([4, 5, 6]);
  });

  it('makes room for others where it removes failed records', () => {
    const { rows } = openRows(new ManualClock());
    append(rows, '{}', '{}');
    settle(rows, 1, { state: 'failed' });
    const { bytes } = rows.counts();
    change(rows, () => rows.finished.prune(keep('failed', -1, 0), 10));
    expect(rows.counts()).toMatchObject({ failed: 0, pending: 1, bytes: bytes / 2 });
  });

  it('gives no id or sequence a second time', () => {
    const { rows } = openRows(new ManualClock());
    append(rows, '{}', '{}');
    settle(rows, 1, { state: 'delivered' });
    settle(rows, 2, { state: 'delivered' });
    change(rows, () => rows.finished.prune(keep('delivered', -1, 0), 10));
    expect(sequencesOf(append(rows, '{}'))).toEqual([3]);
    expect(rows.backlog.untried(0, 10).records[0]?.id).toBe(3);
  });
});

describe("the store's clock", () => {
  /** Opens, lets time pass, commits, closes, and opens again later. */
  async function over(restart: (clock: ManualClock) => Promise<ManualClock>): Promise<number> {
    const state_dir = scratchFolder();
    const clock = new ManualClock();
    const first = openRows(clock, { state_dir });
    await clock.advance(10_000);
    append(first.rows, '{}');
    const before_ms = first.rows.now();
    first.db.close();
    return openRows(await restart(clock), { state_dir }).rows.now() - before_ms;
  }

  it('goes on over a restart with the time that passed meanwhile', async () => {
    const passed_ms = await over(async (clock) => {
      await clock.advance(5_000);
      return clock;
    });
    expect(passed_ms).toBe(5_000);
  });

  it('goes on where the monotonic clock starts anew, as after a boot', async () => {
    expect(await over(async (clock) => new ManualClock(clock.wallMs() + 5_000))).toBe(5_000);
  });

  it('stands still, and never goes back, where the wall clock was set back meanwhile', async () => {
    expect(await over(async (clock) => new ManualClock(clock.wallMs() - 24 * HOUR_MS))).toBe(0);
  });

  it('follows the time since the boot over a restart, whatever the wall clock was set to', async () => {
    for (const step_ms of [2_000 * 24 * HOUR_MS, -24 * HOUR_MS]) {
      const passed_ms = await over(async (clock) => {
        clock.step(step_ms);
        await clock.advance(5_000);
        return clock;
      });
      expect(passed_ms).toBe(5_000);
    }
  });

  it('goes on by no more than the time since the boot where that is another', async () => {
    const boot = { id: 'the next', ms: 60_000 };
    expect(await over(async (clock) => new ManualClock(clock.wallMs() + 24 * HOUR_MS, boot))).toBe(60_000);
  });

  it('takes a clock of the boot that went back for that of another', async () => {
    let id = '';
    const passed_ms = await over(async (clock) => {
      id = clock.boot().id;
      return new ManualClock(clock.wallMs() + 24 * HOUR_MS, { id, ms: 1_000 });
    });
    expect(passed_ms).toBe(1_000);
  });

  it('does not follow steps of the wall clock while it runs', async () => {
    const clock = new ManualClock();
    const { rows } = openRows(clock);
    const before_ms = rows.now();
    clock.step(24 * HOUR_MS);
    await clock.advance(1_000);
    clock.step(-48 * HOUR_MS);
    expect(rows.now() - before_ms).toBe(1_000);
  });
});
