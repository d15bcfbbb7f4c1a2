import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadRecord, type ProcessRecord, RecordFile } from '../../src/process/record.ts';
import { scratchFolder } from '../support/scratch.ts';

function newRecord(env: Record<string, string> = {}): ProcessRecord {
  return {
    process_id: 'p',
    request: { command: ['true'], env },
    command: ['true'],
    cwd: '/',
    mark: 'm',
    created_at_ms: 1,
    restart_count: 0,
    run: null,
    end: null,
    is_final: false,
    is_stopped: false,
    unsent: [],
  };
}

test('what was saved last is loaded, also where the next save was cut off, and what follows that', async () => {
  const folder = scratchFolder();
  const record = newRecord();
  const file = new RecordFile(folder, record);
  for (const restart_count of [1, 2, 3]) {
    record.restart_count = restart_count;
    await file.save();
  }
  await file.close();
  await appendFile(join(folder, 'process.json'), '\n{"process_id":"p","unse');
  expect(await loadRecord(folder)).toEqual(record);
  record.restart_count = 4;
  const next = new RecordFile(folder, record);
  await next.save();
  await next.close();
  expect(await loadRecord(folder)).toEqual(record);
});

test('saves that come together are one, and hold what was changed last', async () => {
  const folder = scratchFolder();
  const record = newRecord();
  const file = new RecordFile(folder, record);
  const saves = [file.save(), file.save()];
  record.restart_count = 7;
  await Promise.all(saves);
  await file.save();
  await file.close();
  const lines = (await readFile(join(folder, 'process.json'), 'utf8')).trim().split('\n');
  expect(lines).toHaveLength(2);
  expect(JSON.parse(lines[0] as string)).toEqual(record);
});

test('the file stays small, however often a record is saved and however large it is', async () => {
  const folder = scratchFolder();
  const record = newRecord({ LARGE: 'x'.repeat(100_000) });
  const file = new RecordFile(folder, record);
  for (let save = 0; save < 30; save++) {
    record.restart_count = save;
    await file.save();
    expect((await readFile(join(folder, 'process.json'))).length).toBeLessThan(500_000);
  }
  await file.close();
  expect(await loadRecord(folder)).toEqual(record);
});

test('a folder without a record that can be read tells nothing', async () => {
  const folder = scratchFolder();
  expect(await loadRecord(folder)).toBeNull();
  await appendFile(join(folder, 'process.json'), '\n{"process_id":"p"}\nnull\n[]\n"text"');
  expect(await loadRecord(folder)).toBeNull();
});
