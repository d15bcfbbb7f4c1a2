import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bootTicks, readBootId } from '../../src/base/linux/procfs.ts';
import { OUTPUT_PENDING_BYTES } from '../../src/contract/defaults.ts';
import type { ProcessRequest, ProcessView } from '../../src/contract/processes.ts';
import type { RunRecord } from '../../src/process/record.ts';
import { type KeptRecord, loadRecord } from '../../src/process/record-file.ts';
import { TAG_VARIABLE } from '../../src/process/tree/tree.ts';
import { eventually } from '../support/eventually.ts';
import { fileLimit } from '../support/process/file-limit.ts';
import { isAlive, listOf, outputOf, program, start } from '../support/process/harness.ts';

let root: string;
let directory: string;
let daemon: ChildProcess | null = null;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sandboxd-recovery-'));
  directory = join(root, 'processes');
});
afterEach(async () => {
  await killDaemon();
  // Whatever a test left running ends with a daemon that finds it.
  await (await start({ directory, grace_ms: 100 })).supervisor.stop();
  await rm(root, { recursive: true, force: true });
});

const killable = join(import.meta.dirname, '../support/process/killable-daemon.ts');
const LASTING = JSON.stringify({ command: ['sleep', '1000'], process_id: 'p' });

/** Starts a daemon of its own process with these requests. */
async function startDaemon(events_file: string, ...requests: ProcessRequest[]): Promise<ProcessView[]> {
  const args = [killable, directory, events_file, ...requests.map((request) => JSON.stringify(request))];
  daemon = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let line = '';
  for await (const chunk of daemon.stdout ?? []) {
    line += chunk;
    if (line.endsWith('\n')) break;
  }
  return JSON.parse(line);
}

async function killDaemon(): Promise<void> {
  const killed = daemon;
  daemon = null;
  if (killed?.exitCode !== null || killed.signalCode !== null) return;
  const ended = new Promise((resolve) => killed.once('exit', resolve));
  killed.kill('SIGKILL');
  await ended;
}

/** A file of a process; "null" where there is none yet. */
function contents(file: string): Promise<string> {
  return readFile(join(directory, file), 'utf8').catch(() => 'null');
}

async function readEvents(file: string) {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** The end of what a process kept, from the first whole line on. */
async function numbers(supervisor: Parameters<typeof outputOf>[0], process_id: string): Promise<number[]> {
  return (await outputOf(supervisor, process_id)).stdout.split('\n').slice(0, -1).map(Number);
}

test('a process outlives its daemon, the next finds it, and no output is missing', async () => {
  const [view] = await startDaemon(join(root, 'events'), {
    command: program('tick.mjs'),
    process_id: 'tick',
  });
  await eventually(async () => expect(await contents('tick/stdout')).toContain('\n20\n'));
  await killDaemon();
  const { supervisor, events } = await start({ directory });
  expect(await supervisor.get('tick')).toMatchObject({ state: 'running', pid: view?.pid, exit_code: null });
  const last = (await numbers(supervisor, 'tick')).length;
  const seen = await eventually(async () => {
    const all = await numbers(supervisor, 'tick');
    expect(all.length).toBeGreaterThan(last + 20);
    return all;
  });
  expect(seen).toEqual(seen.map((_, index) => index));
  expect(events).toEqual([]);
  expect(await supervisor.remove('tick')).toMatchObject({ state: 'exited', exit_code: null, signal: null });
  await eventually(() => expect(events).toHaveLength(1));
  expect(events[0]).toMatchObject({
    event_type: 'process.exited',
    payload: { exit_code: null, reason: 'unknown' },
  });
});

test('output that waits for a lossless follower waits on with the next daemon, and not a byte is missing', async () => {
  const name = 'lossless';
  await startDaemon(join(root, 'events'), { shell: 'seq 1 3000000', process_id: 'p', name });
  // What is read and not yet written is lost with the daemon: the process must wait for the follower first.
  let kept = 0;
  await eventually(async () => {
    const before = kept;
    kept = (await contents('p/stdout')).length;
    expect(kept).toBeGreaterThanOrEqual(OUTPUT_PENDING_BYTES);
    expect(kept).toBe(before);
  });
  await killDaemon();
  const { supervisor } = await start({ directory });
  const hash = createHash('sha256');
  let bytes = 0;
  const query = { streams: ['stdout'], follow: true, lossless: true } as const;
  for await (const item of await supervisor.output('p', query)) {
    if (item.type !== 'output') continue;
    hash.update(item.data);
    bytes += item.data.length;
  }
  const all = Array.from({ length: 3_000_000 }, (_, index) => `${index + 1}\n`).join('');
  expect([bytes, hash.digest('hex')]).toEqual([all.length, createHash('sha256').update(all).digest('hex')]);
});

test('an end that fell while no daemon ran is told once, as unknown, and its output is kept', async () => {
  const request = { shell: 'echo before; sleep 1000', process_id: 'gone' };
  const [view] = await startDaemon(join(root, 'events'), request);
  await eventually(async () => expect(await contents('gone/stdout')).toBe('before\n'));
  await killDaemon();
  process.kill(-(view?.pid ?? 0), 'SIGKILL');
  await eventually(async () => expect(await isAlive(view?.pid ?? 0)).toBe(false));
  const first = await start({ directory });
  await eventually(() => expect(first.events).toHaveLength(1));
  expect(first.events[0]).toMatchObject({
    event_type: 'process.exited',
    payload: { process_id: 'gone', exit_code: null, reason: 'unknown', stdout_preview: 'before\n' },
  });
  expect(await first.supervisor.get('gone')).toMatchObject({ state: 'exited', exit_code: null });
  await first.supervisor.stop();
  const second = await start({ directory });
  expect((await outputOf(second.supervisor, 'gone')).stdout).toBe('before\n');
  expect(await second.supervisor.spawn(request)).toMatchObject({ created: false });
  await second.supervisor.stop();
  expect(second.events).toEqual([]);
});

test('events that were not stored when the daemon was killed are emitted by the next, with the same keys', async () => {
  await startDaemon('-', { shell: 'exit 7', process_id: 'p' });
  await eventually(async () =>
    expect((await loadRecord(join(directory, 'p')))?.record.unsent).toHaveLength(2),
  );
  await killDaemon();
  const first = await start({ directory });
  await eventually(() => expect(first.events).toHaveLength(2));
  expect(first.events).toMatchObject([
    { event_type: 'process.started' },
    { event_type: 'process.exited', payload: { exit_code: 7 } },
  ]);
  expect(first.keys.map((key) => key.split('.').slice(1).join('.'))).toEqual(['0.started', '0.ended']);
  await first.supervisor.stop();
  const second = await start({ directory });
  await second.supervisor.stop();
  expect(second.events).toEqual([]);
});

test('a pid that belongs to another process by now is not taken for the one that was started', async () => {
  await startDaemon(join(root, 'events'), { command: ['sleep', '1000'], process_id: 'p' });
  await eventually(async () => expect(await readEvents(join(root, 'events'))).toHaveLength(1));
  const record = await eventually(async () => {
    const { record: known } = (await loadRecord(join(directory, 'p'))) as KeptRecord;
    expect(known?.run).toBeTruthy();
    return known;
  });
  await killDaemon();
  const run = record.run as RunRecord;
  process.kill(-run.pid, 'SIGKILL');
  const innocent = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
  run.pid = innocent.pid as number;
  await writeFile(join(directory, 'p/process.json'), JSON.stringify(record));
  const { supervisor, events } = await start({ directory });
  await eventually(() => expect(events).toHaveLength(1));
  await supervisor.stop();
  expect(await isAlive(innocent.pid ?? 0)).toBe(true);
  innocent.kill('SIGKILL');
});

test('a process whose daemon was killed before it could note the pid is found by its mark', async () => {
  const mark = 'mark-of-the-test';
  await mkdir(join(directory, 'lost'), { recursive: true });
  const child = spawn('sleep', ['1000'], {
    detached: true,
    stdio: 'ignore',
    env: { PATH: process.env.PATH, [TAG_VARIABLE]: mark },
  });
  const record = {
    process_id: 'lost',
    request: { command: ['sleep', '1000'] },
    command: ['sleep', '1000'],
    cwd: '/',
    mark,
    created_at_ms: Date.now(),
    restart_count: 0,
    run: null,
    end: null,
    is_final: false,
    is_stopped: false,
    unsent: [],
  };
  await writeFile(join(directory, 'lost/process.json'), JSON.stringify(record));
  await mkdir(join(directory, 'never-started'));
  await writeFile(
    join(directory, 'never-started/process.json'),
    JSON.stringify({ ...record, process_id: 'never-started', mark: 'another' }),
  );
  const { supervisor, events } = await start({ directory });
  await eventually(() => expect(events).toHaveLength(1));
  expect(events[0]).toMatchObject({ event_type: 'process.started', payload: { pid: child.pid } });
  expect((await listOf(supervisor)).map(({ process_id }) => process_id)).toEqual(['lost']);
  await supervisor.remove('lost');
});

test('a daemon that was killed while paused leaves nobody stopped', async () => {
  await startDaemon(join(root, 'events'), { command: program('tick.mjs'), process_id: 'tick' });
  await eventually(async () => expect(await contents('tick/stdout')).toContain('\n3\n'));
  daemon?.kill('SIGUSR2');
  await eventually(async () =>
    expect((await loadRecord(join(directory, 'tick')))?.record.is_stopped).toBe(true),
  );
  await killDaemon();
  const { supervisor } = await start({ directory });
  const before = (await numbers(supervisor, 'tick')).length;
  await eventually(async () =>
    expect((await numbers(supervisor, 'tick')).length).toBeGreaterThan(before + 3),
  );
});

test('a process that lasts is on the disk with its record and its place, where a power cut leaves it', async () => {
  const trace = join(root, 'trace');
  const traced = () => readFile(trace, 'utf8').catch(() => '');
  const calls = ['-f', '-y', '-o', trace, '-e', 'trace=fsync,fdatasync'];
  daemon = spawn('strace', [...calls, process.execPath, killable, directory, join(root, 'events'), LASTING], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  for (const name of ['p/process.json', 'p', ''])
    await eventually(async () => expect(await traced()).toContain(`<${join(directory, name)}>) = 0`));
  const tracer = daemon.pid as number;
  const [child] = (await readFile(`/proc/${tracer}/task/${tracer}/children`, 'utf8')).split(' ');
  process.kill(Number(child), 'SIGKILL');
});

test('a run that a daemon began anew and was killed before it could note is found, and no second one is begun', async () => {
  const mark = 'mark-of-a-restart';
  const ended_ticks = bootTicks();
  await eventually(() => expect(bootTicks()).toBeGreaterThan(ended_ticks));
  const child = spawn('sleep', ['1000'], {
    detached: true,
    stdio: 'ignore',
    env: { PATH: process.env.PATH, [TAG_VARIABLE]: mark },
  });
  const command = ['sleep', '1000'];
  const run = {
    pid: 999_999_999,
    boot_id: readBootId(),
    start_ticks: 1,
    started_at_ms: 1,
    is_ready: null,
  };
  const record = {
    process_id: 'p',
    request: { command, restart: { policy: 'always' } },
    command,
    cwd: '/',
    mark,
    created_at_ms: Date.now(),
    restart_count: 1,
    run: { ...run, ended_ticks },
    end: { kind: 'exited', exit_code: 1, signal: null, exited_at_ms: Date.now() },
    is_final: false,
    is_stopped: false,
    unsent: [],
  };
  await mkdir(join(directory, 'p'), { recursive: true });
  await writeFile(join(directory, 'p/process.json'), JSON.stringify(record));
  const { supervisor, events } = await start({ directory });
  expect(await supervisor.get('p')).toMatchObject({ state: 'running', pid: child.pid, restart_count: 1 });
  await eventually(() => expect(events).toHaveLength(1));
  expect(events[0]).toMatchObject({ event_type: 'process.started', payload: { pid: child.pid } });
  await supervisor.remove('p');
});

test('while no file can be opened no process counts as ended, and a process can be asked for', async () => {
  const limitFiles = fileLimit();
  const first = await start();
  await first.supervisor.spawn({ command: ['sleep', '1000'], process_id: 'p' });
  const { supervisor } = await first.again();
  await limitFiles(3);
  await new Promise((resolve) => setTimeout(resolve, 300)); // some looks of the one that is not its parent
  expect(await supervisor.get('p')).toMatchObject({ state: 'running' });
  await expect(supervisor.remove('p')).rejects.toMatchObject({ code: 'too_many_requests' });
  await limitFiles(1_024);
  expect(await supervisor.get('p')).toMatchObject({ state: 'running' });
  await supervisor.remove('p');
});
