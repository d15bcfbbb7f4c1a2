import { describe, expect, it } from 'vitest';
import { checkOutboxRow, goOnFrom, isOutboxRow } from '../../../../src/outbox/sqlite/rows/outbox-row.ts';
import type { OutboxRow } from '../../../../src/outbox/sqlite/rows/rows.ts';
import { openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append, sequencesOf, settle } from '../../../support/outbox/rows.ts';

/** The database of an outbox with three records, two of them pending, and its row. */
function threeRecords() {
  const { rows, db } = openRows(new ManualClock());
  append(rows, '{}', '{}', '{}');
  settle(rows, 1, { state: 'delivered' });
  settle(rows, 2, { state: 'pending', due_ms: rows.now() + 1_000, probe_ms: rows.now() + 1_000 });
  return { rows, db, row: db.prepare('SELECT * FROM outbox').get() as OutboxRow };
}

describe('the row of an outbox', () => {
  it('is valid as a daemon writes it', () => {
    expect(isOutboxRow(threeRecords().row)).toBe(true);
  });

  it.each<keyof OutboxRow>(['number', 'first_id', 'delivered_bytes', 'boot_ms', 'boot_id'])(
    'is damaged without its column %s, as a shorter one of another format has none',
    (column) => {
      const { [column]: _missing, ...rest } = threeRecords().row;
      expect(isOutboxRow(rest as OutboxRow)).toBe(false);
    },
  );

  it.each<[keyof OutboxRow, unknown]>([
    ['next_sequence', 0],
    ['next_id', 1.5],
    ['pending', -1],
    ['bytes', '12'],
    ['pending_bytes', -1],
    ['clock_ms', null],
    ['delivered_bytes', Number.MAX_VALUE],
    ['sandbox_id', 7],
    ['boot_id', new Uint8Array(2)],
  ])('is damaged where %s is %j', (column, value) => {
    expect(isOutboxRow({ ...threeRecords().row, [column]: value })).toBe(false);
  });
});

describe('an outbox that is opened', () => {
  it('is whole where each record that it counts as pending can be found', () => {
    const { db } = threeRecords();
    expect(() => checkOutboxRow(db)).not.toThrow();
  });

  it.each([
    ['has lost a delivery', 'DELETE FROM deliveries WHERE id = 3'],
    ['has lost a record', 'DELETE FROM records WHERE id = 3'],
    ['counts more records than there are', 'UPDATE outbox SET pending = 3'],
    ['has lost its row', 'DELETE FROM outbox'],
    ['has a row with numbers that cannot be', 'UPDATE outbox SET next_id = 0'],
  ])('is damaged where it %s', (_, change) => {
    const { db } = threeRecords();
    db.exec(change);
    expect(() => checkOutboxRow(db)).toThrow(/damaged|counts pending records that it does not contain/);
  });
});

describe('a new outbox in the place of a damaged one', () => {
  it('continues its sandbox and its numbers, and counts its own records', () => {
    const { row } = threeRecords();
    const { db } = openRows(new ManualClock(), { sandbox_id: 'another' });
    goOnFrom(db, row);
    const now = db.prepare('SELECT * FROM outbox').get() as OutboxRow;
    expect(now).toMatchObject({ sandbox_id: 'sb-1', next_sequence: 4, next_id: 4, first_id: 4, pending: 0 });
    expect(now.clock_ms).toBe(row.clock_ms);
  });

  it('gives no sequence a second time', () => {
    const clock = new ManualClock();
    const { rows } = openRows(clock);
    rows.begin();
    rows.skipSequence(41);
    rows.commit();
    expect(sequencesOf(append(rows, '{}'))).toEqual([42]);
  });
});
