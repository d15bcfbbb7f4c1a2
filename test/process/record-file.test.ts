import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { type ProcessRecord, requestFingerprint } from '../../src/process/record.ts';
import {
  isMarkedOver,
  loadRecord,
  loadRequest,
  RecordFile,
  RecordSaver,
} from '../../src/process/record-file.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { scratchFolder } from '../support/scratch.ts';

function newRecord(): ProcessRecord {
  return {
    process_id: 'p',
    request: { name: 'n' },
    fingerprint: 'f',
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
  expect((await loadRecord(folder))?.record).toEqual(record);
  record.restart_count = 4;
  const next = new RecordFile(folder, record);
  await next.save();
  await next.close();
  expect((await loadRecord(folder))?.record).toEqual(record);
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

test('a request is written once, however often its record is saved, and is read back whole', async () => {
  const folder = scratchFolder();
  const record = newRecord();
  const request = { command: ['true'], env: { LARGE: 'x'.repeat(1_000_000) } };
  const file = new RecordFile(folder, record, { request });
  for (let save = 0; save < 3_000; save++) {
    record.restart_count = save;
    await file.save();
    if (save % 500 === 0) expect(file.size_bytes).toBe(statSync(join(folder, 'process.json')).size);
  }
  await file.close();
  expect(file.size_bytes).toBeLessThan(1_300_000);
  expect((await loadRecord(folder))?.record).toEqual(record);
  expect(await loadRequest(folder)).toEqual(request);
});

test('what is over is marked, which can be seen without reading it, and is saved no more', async () => {
  const folder = scratchFolder();
  const record = newRecord();
  const file = new RecordFile(folder, record, { isOver: () => record.is_final });
  await file.save();
  expect([file.is_over, await isMarkedOver(folder)]).toEqual([false, false]);
  record.is_final = true;
  await file.save();
  const { size_bytes } = file;
  await file.save();
  expect([file.is_over, await isMarkedOver(folder), file.size_bytes]).toEqual([true, true, size_bytes]);
  expect(await loadRecord(folder)).toEqual({ record, size_bytes, is_over: true });
});

test('a mark on a record that is not over, as after a power cut, is taken away', async () => {
  const folder = scratchFolder();
  const record = newRecord();
  const file = new RecordFile(folder, record);
  await file.save();
  await file.close();
  chmodSync(join(folder, 'process.json'), 0o400);
  expect(await loadRecord(folder)).toMatchObject({ is_over: false });
  expect(await isMarkedOver(folder)).toBe(false);
});

test('a record of an earlier build, with its request in every line, is read', async () => {
  const folder = scratchFolder();
  const request = { command: ['echo', 'x'.repeat(5_000)], env: { A: '1' }, name: 'n' };
  const { fingerprint: _, ...record } = { ...newRecord(), request, command: request.command };
  const line = `\n${JSON.stringify(record)}`;
  await appendFile(join(folder, 'process.json'), line + line);
  expect((await loadRecord(folder))?.record).toMatchObject({
    request: { name: 'n' },
    fingerprint: requestFingerprint(request),
    command: ['echo', expect.stringMatching(/^x{1000,1024}$/)],
    is_command_cut: true,
  });
  expect(await loadRequest(folder)).toEqual(request);
});

test('a folder without a record that can be read tells nothing', async () => {
  const folder = scratchFolder();
  expect(await loadRecord(folder)).toBeNull();
  await appendFile(join(folder, 'process.json'), '\n{"process_id":"p"}\nnull\n[]\n"text"');
  expect(await loadRecord(folder)).toBeNull();
});

test('a record that is written anew is on the disk before it takes its name', async () => {
  const folder = scratchFolder();
  const trace = join(scratchFolder(), 'trace');
  const module = join(import.meta.dirname, '../../src/process/record-file.ts');
  const script = `
    import { RecordFile } from ${JSON.stringify(module)};
    const record = { process_id: 'p', request: {}, cwd: 'x'.repeat(300000), unsent: [] };
    const file = new RecordFile(${JSON.stringify(folder)}, record);
    for (let save = 0; save < 2; save++) await file.save();
  `;
  const calls = ['-e', 'trace=fsync,fdatasync,rename,renameat,renameat2'];
  const node = [process.execPath, '--input-type=module', '-e', script];
  await promisify(execFile)('strace', ['-f', '-y', '-o', trace, ...calls, ...node]);
  const steps = (await readFile(trace, 'utf8')).split('\n').filter((line) => line.includes(folder));
  expect(steps).toHaveLength(3);
  expect(steps[0]).toMatch(/sync\(\d+<.*process\.json\.new>\)/);
  expect(steps[1]).toMatch(/rename.*process\.json\.new/);
  expect(steps[2]).toContain(`<${folder}>`);
});

function savingIn(folder: string) {
  const record = {
    process_id: 'p',
    restart_count: 0,
    is_final: false,
    unsent: [],
  } as unknown as ProcessRecord;
  const clock = new ManualClock();
  const errors: string[] = [];
  const saver = new RecordSaver(clock, folder, record, {}, (_error, message) => errors.push(message));
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
  await eventually(() => expect(saved()).toHaveLength(2));
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
  await eventually(() => expect(lasting.saved()).toHaveLength(1));
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
  await eventually(() => expect(errors).toHaveLength(2));
  expect(errors).toEqual(['a process record could not be saved', 'a process record could not be synced']);
  mkdirSync(folder);
  await saver.save();
  expect(saved()).toHaveLength(1);
  await saver.close();
  rmSync(folder, { recursive: true });
});
