import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type ProcessRecord, requestFingerprint } from '../../src/process/record.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { listOf, outputOf, start } from '../support/process/harness.ts';
import { scratchFolder } from '../support/scratch.ts';

/** A folder of processes with one that has ended, `p`, and its output `kept`. */
function withEnded(): string {
  const directory = join(scratchFolder(), 'processes');
  put(directory, 'p');
  return directory;
}

function put(directory: string, process_id: string, changes: Partial<ProcessRecord> = {}): string {
  const folder = join(directory, process_id);
  mkdirSync(folder, { recursive: true });
  const run = { pid: 999_999_999, boot_id: 'another', start_ticks: 1, started_at_ms: 1, is_ready: null };
  const record: ProcessRecord = {
    process_id,
    request: { command: ['true'], process_id },
    command: ['true'],
    fingerprint: requestFingerprint({ command: ['true'] }),
    cwd: '/',
    mark: `mark-${process_id}`,
    created_at_ms: Date.now(),
    restart_count: 0,
    run,
    end: { kind: 'exited', exit_code: 0, signal: null, exited_at_ms: Date.now() },
    is_final: true,
    is_stopped: false,
    unsent: [],
    ...changes,
  };
  writeFileSync(join(folder, 'process.json'), JSON.stringify(record));
  writeFileSync(join(folder, 'stdout'), 'kept');
  return folder;
}

function remove(path: string): void {
  execFileSync('rm', ['-rf', path]);
}

type Plant = (folder: string) => void;

/** What somebody can put in the place of a process's files, and whether the process is still known then. */
const PLANTED: [what: string, plant: Plant, is_known: boolean][] = [
  [
    'a pipe as its record',
    (folder) => instead(folder, 'process.json', (path) => execFileSync('mkfifo', [path])),
    false,
  ],
  [
    'an endless device as its record',
    (folder) => instead(folder, 'process.json', (path) => symlinkSync('/dev/zero', path)),
    false,
  ],
  [
    'a directory as its record',
    (folder) => instead(folder, 'process.json', (path) => mkdirSync(path)),
    false,
  ],
  [
    'a record of 8 GiB without a line',
    (folder) => truncateSync(join(folder, 'process.json'), 8 * 2 ** 30),
    false,
  ],
  [
    'a record without a command',
    (folder) => void put(join(folder, '..'), 'q', { command: [] as never }),
    false,
  ],
  [
    'a record without a request',
    (folder) => void put(join(folder, '..'), 'q', { request: null as never }),
    false,
  ],
  [
    'a record that names another process',
    (folder) => void put(join(folder, '..'), 'q', { process_id: '..' }),
    false,
  ],
  ['a pipe as kept output', (folder) => void execFileSync('mkfifo', [join(folder, 'stdout.0')]), true],
  ['a directory as output', (folder) => instead(folder, 'stdout', (path) => mkdirSync(path)), true],
  ['a dangling link as kept output', (folder) => symlinkSync('nowhere', join(folder, 'stdout.7')), true],
  ['a file as the pipe of its output', (folder) => writeFileSync(join(folder, 'stdout.pipe'), 'x'), true],
  [
    'a device as the pipe of its output',
    (folder) => symlinkSync('/dev/zero', join(folder, 'stderr.pipe')),
    true,
  ],
];

function instead(folder: string, name: string, plant: (path: string) => void): void {
  remove(join(folder, name));
  plant(join(folder, name));
}

test.each(PLANTED)('%s holds up no start', async (_what, plant, is_known) => {
  const directory = withEnded();
  plant(put(directory, 'q'));
  const { supervisor } = await start({ directory });
  const known = (await listOf(supervisor)).map(({ process_id }) => process_id);
  expect(known.sort()).toEqual(is_known ? ['p', 'q'] : ['p']);
  expect((await outputOf(supervisor, 'p')).stdout).toBe('kept');
});

test('a folder is not followed where it is a link, and what it leads to stays', async () => {
  const directory = withEnded();
  const elsewhere = put(scratchFolder(), 'q');
  symlinkSync(elsewhere, join(directory, 'q'));
  const { supervisor } = await start({ directory });
  expect((await listOf(supervisor)).map(({ process_id }) => process_id)).toEqual(['p']);
  expect(readdirSync(elsewhere)).toContain('process.json');
});

/** From now on looks at this path fail in this process; resolves with what ends that. */
async function failLooks(path: string): Promise<() => Promise<void>> {
  const spoil = ['-P', path, '-e', 'inject=openat,lstat,statx,newfstatat:error=EIO'];
  const tracer = spawn('strace', ['-f', '-o', '/dev/null', '-p', String(process.pid), ...spoil], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(tracer, 'exit');
  let said = '';
  for await (const text of tracer.stderr) {
    said += text;
    if (said.includes('attached')) break;
  }
  return async () => {
    tracer.kill('SIGINT');
    await ended;
  };
}

test.each(['process.json', 'stdout'])(
  'a read error of %s at the start removes nothing, holds up no other process, and passes',
  async (name) => {
    const directory = withEnded();
    put(directory, 'q');
    const clock = new ManualClock(Date.now());
    const pass = await failLooks(join(directory, 'q', name));
    const { supervisor } = await start({ directory }, clock).finally(pass);
    expect((await listOf(supervisor)).map(({ process_id }) => process_id)).toEqual(['p']);
    const request = { command: ['true'], process_id: 'q' };
    await expect(supervisor.spawn(request)).rejects.toMatchObject({ code: 'outbox_unavailable' });
    await clock.advance(60_000);
    await eventually(async () => expect(await listOf(supervisor)).toHaveLength(2));
    expect((await outputOf(supervisor, 'q')).stdout).toBe('kept');
    expect(await supervisor.spawn(request)).toMatchObject({ created: false });
  },
);

test('a pipe that cannot be removed is told, and the daemon lives', async () => {
  const rejected: unknown[] = [];
  const note = (error: unknown) => rejected.push(error);
  process.on('unhandledRejection', note);
  try {
    const { supervisor, directory } = await start();
    await supervisor.spawn({ command: ['sleep', '1000'], process_id: 'p' });
    for (const name of ['stdout.pipe', 'stderr.pipe']) {
      instead(join(directory, 'p'), name, (path) => mkdirSync(join(path, 'full'), { recursive: true }));
    }
    await supervisor.remove('p');
    expect(await supervisor.get('p')).toMatchObject({ state: 'exited', signal: 'SIGTERM' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(rejected).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});
