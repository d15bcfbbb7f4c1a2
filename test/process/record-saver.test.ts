import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ProcessRecord } from '../../src/process/record.ts';
import { RecordSaver } from '../../src/process/record-saver.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/process/harness.ts';
import { scratchFolder } from '../support/scratch.ts';

function savingIn(folder: string) {
  const record = {
    process_id: 'p',
    restart_count: 0,
    is_final: false,
    unsent: [],
  } as unknown as ProcessRecord;
  const clock = new ManualClock();
  const errors: string[] = [];
  const saver = new RecordSaver(clock, folder, record, (_error, message) => errors.push(message));
  const saved = (): ProcessRecord[] => {
    const path = join(folder, 'process.json');
    const lines = (existsSync(path) ? readFileSync(path, 'utf8') : '').split('\n');
    return lines.filter(Boolean).map((line) => JSON.parse(line));
  };
  return { record, clock, errors, saver, saved };
}

test('what may be saved soon is saved together after 100 ms', async () => {
  const { record, clock, saver, saved } = savingIn(scratchFolder());
  await saver.save();
  for (const restart_count of [1, 2, 3]) {
    record.restart_count = restart_count;
    saver.saveSoon();
  }
  await clock.advance(99);
  expect(saved()).toHaveLength(1);
  await clock.advance(1);
  await until(() => saved().length === 2);
  expect(saved()[1]).toMatchObject({ restart_count: 3 });
  await saver.close();
});

test('a save makes the one that is due soon unnecessary, and so does closing', async () => {
  const { clock, saver, saved } = savingIn(scratchFolder());
  saver.saveSoon();
  await saver.save();
  await clock.advance(1_000);
  expect(saved()).toHaveLength(1);
  saver.saveSoon();
  await saver.close();
  await clock.advance(1_000);
  expect([saved().length, clock.timers]).toEqual([1, 0]);
});

test('the record of a process that lasts a second is synced once, and that of one that ended is not', async () => {
  const lasting = savingIn(scratchFolder());
  lasting.saver.syncLater();
  await lasting.clock.advance(999);
  lasting.saver.syncLater();
  await lasting.clock.advance(1);
  await until(() => lasting.saved().length === 1);
  await lasting.saver.close();
  const ended = savingIn(scratchFolder());
  ended.saver.syncLater();
  ended.record.is_final = true;
  await ended.clock.advance(1_000);
  expect(ended.saved()).toEqual([]);
  const cancelled = savingIn(scratchFolder());
  cancelled.saver.syncLater();
  cancelled.saver.cancelSync();
  await cancelled.clock.advance(1_000);
  expect(cancelled.saved()).toEqual([]);
});

test('what the disk refuses is reported, not thrown, and a later save works', async () => {
  const folder = join(scratchFolder(), 'p');
  const { clock, errors, saver, saved } = savingIn(folder);
  await saver.save();
  saver.syncLater();
  await clock.advance(1_000);
  await until(() => errors.length === 2);
  expect(errors).toEqual(['a process record could not be saved', 'a process record could not be synced']);
  mkdirSync(folder);
  await saver.save();
  expect(saved()).toHaveLength(1);
  await saver.close();
  rmSync(folder, { recursive: true });
});
