import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutboxState } from '../../../../src/outbox/sqlite/rows/outbox-state.ts';
import type { OutboxRow } from '../../../../src/outbox/sqlite/rows/rows.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const LIMITS = { max_bytes: 1_000, max_records: 10, window_ms: 1_000 };
const STATES = ['pending', 'delivered', 'failed', 'expired'] as const;

const row = (change: Partial<OutboxRow> = {}): OutboxRow => ({
  number: 3,
  sandbox_id: 'sb-1',
  next_sequence: 8,
  first_id: 1,
  next_id: 9,
  is_ready: 1,
  pending: 100,
  delivered: 100,
  failed: 100,
  expired: 100,
  foreign: 0,
  bytes: 10_000,
  pending_bytes: 5_000,
  delivered_bytes: 10_000,
  clock_ms: 0,
  clock_wall_ms: 0,
  boot_id: '',
  boot_ms: 0,
  ...change,
});

const records = (state: OutboxState) => STATES.reduce((sum, name) => sum + state.row[name], 0);
const bytes = (state: OutboxState) => state.row.bytes + state.row.delivered_bytes;

describe('the numbers of an outbox', () => {
  it('lose no record and no byte, whatever states records move between', () => {
    const moves = fc.array(
      fc.tuple(fc.constantFrom(...STATES), fc.constantFrom(...STATES), fc.integer({ min: 0, max: 500 })),
    );
    fc.assert(
      fc.property(moves, (all) => {
        const state = new OutboxState(row(), new ManualClock(), LIMITS);
        for (const [from, to, size_bytes] of all) state.move(from, to, size_bytes);
        expect([records(state), bytes(state)]).toEqual([400, 20_000]);
      }),
    );
  });

  it('count delivered records apart from those that take room', () => {
    const state = new OutboxState(row(), new ManualClock(), LIMITS);
    state.move('pending', 'delivered', 300);
    expect(state.row).toMatchObject({
      pending: 99,
      delivered: 101,
      bytes: 9_700,
      pending_bytes: 4_700,
      delivered_bytes: 10_300,
    });
    state.move('delivered', 'pending', 300);
    expect(state.row).toEqual(row());
  });

  it('are after a rollback as they were when they were last on disk', () => {
    const state = new OutboxState(row(), new ManualClock(), LIMITS);
    state.move('pending', 'failed', 10);
    state.committed();
    const on_disk = { ...state.row };
    state.row.next_sequence += 5;
    state.move('pending', 'delivered', 10);
    state.rolledBack();
    expect(state.row).toEqual(on_disk);
  });
});

describe('the state of a store that replaces another one', () => {
  it('continues its owner, its numbers and its clock, and counts its own rows', async () => {
    const clock = new ManualClock();
    const before = new OutboxState(row({ next_sequence: 42 }), clock, LIMITS);
    before.owner = { sandbox_id: 'sb-1', team_id: 't', secret: 's', record_key: 'ab'.repeat(32) };
    await clock.advance(5_000);
    const after = new OutboxState(
      row({ sandbox_id: null, next_sequence: 1, pending: 0 }),
      clock,
      LIMITS,
      before,
    );
    expect(after.row).toMatchObject({ sandbox_id: 'sb-1', next_sequence: 42, next_id: 9, pending: 0 });
    expect([after.owner, after.record_key]).toEqual([before.owner, before.record_key]);
    expect(after.now()).toBe(before.now());
  });

  it('can continue the clock alone', () => {
    const clock = new ManualClock();
    const state = new OutboxState(row(), clock, LIMITS, undefined, 777);
    expect([state.offset_ms, state.owner]).toEqual([777, null]);
    expect(state.now()).toBe(clock.monotonicMs() + 777);
  });
});

describe('the key of an owner', () => {
  it.each<[string, string | null | undefined]>([
    ['missing', undefined],
    ['null', null],
    ['not a key', 'short'],
  ])('authenticates nothing where it is %s', (_, record_key) => {
    const state = new OutboxState(row(), new ManualClock(), LIMITS);
    state.owner = {
      sandbox_id: 'sb-1',
      team_id: 't',
      secret: '',
      ...(record_key !== undefined && { record_key }),
    };
    expect(state.record_key).toBeNull();
  });
});
