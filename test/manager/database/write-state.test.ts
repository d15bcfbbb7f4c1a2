import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { WRITE_PROBE_MS } from '../../../src/contract/defaults.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { unavailable } from '../../../src/manager/database/database-errors.ts';
import { WriteState } from '../../../src/manager/database/write-state.ts';
import { writeProbeJob } from '../../../src/manager/write-probe.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';

const refused = (code: string) => unavailable(Object.assign(new Error('refused'), { code }));

it.each([
  ['25006', 'it is read-only, or a standby'],
  ['SQLITE_READONLY_DBMOVED', 'it is read-only, or a standby'],
  ['53100', 'its disk is full'],
  ['SQLITE_FULL', 'its disk is full'],
  ['SQLITE_IOERR_WRITE', 'its disk cannot be written'],
])('a write refused by %s is told until writes have been taken for a while', async (code, words) => {
  const clock = new ManualClock();
  const writes = new WriteState(clock);
  expect(writes.refusal).toBeNull();
  writes.note(refused(code));
  expect(writes.refusal).toBe(`The database takes no writes: ${words}.`);
  // A small write may be taken where larger ones are not.
  await clock.advance(WRITE_PROBE_MS);
  writes.taken();
  expect(writes.refusal).toContain(words);
  await clock.advance(WRITE_PROBE_MS);
  writes.taken();
  expect(writes.refusal).toBeNull();
});

it.each(['23505', 'SQLITE_BUSY', '57P01', 'ECONNREFUSED'])('%s says nothing of writes', (code) => {
  const writes = new WriteState(new ManualClock());
  writes.note(refused(code));
  writes.note(new Error('no code'));
  expect(writes.refusal).toBeNull();
});

it('the probe finds a file that takes no writes, and each query tells of it', async () => {
  const database = await openDatabase(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  onTestFinished(() => database.close());
  const { db, writes } = database;
  const probe = writeProbeJob(db, writes);
  expect([await probe.run(), writes.refusal]).toEqual([WRITE_PROBE_MS, null]);
  await db.executeQuery({ sql: 'pragma query_only = on', parameters: [] } as never);
  expect([await probe.run(), writes.refusal]).toEqual([
    WRITE_PROBE_MS,
    'The database takes no writes: it is read-only, or a standby.',
  ]);
});
