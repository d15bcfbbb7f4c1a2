import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog, type Log } from '../../../src/base/log.ts';
import { problemOfWatchDir } from '../../../src/watch/problem-of-watch-dir.ts';
import { Watcher } from '../../../src/watch/thread/watcher.ts';
import { eventually } from '../../support/eventually.ts';
import { CAN_HANG, hungMount, unlessHangs } from '../../support/hung-mount.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { runSandboxd } from '../../support/sandboxd-program.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { MemoryStore } from '../../support/watch/memory-store.ts';
import { until } from '../../support/watch/watched-tree.ts';

const UNHEARD = ['--webhook-url', 'http://127.0.0.1:9/hook'];

/** What makes a `watch_dir` of this kind in a folder, and the reason that the start is refused for. */
const BAD: [kind: string, make: (folder: string) => string, reason: RegExp][] = [
  ['is not absolute', () => 'work/space', /absolute/],
  [
    'is a file',
    (folder) => {
      writeFileSync(join(folder, 'file'), '');
      return join(folder, 'file');
    },
    /must be a directory/,
  ],
  [
    'is a link to a file',
    (folder) => {
      writeFileSync(join(folder, 'file'), '');
      symlinkSync('file', join(folder, 'link'));
      return join(folder, 'link');
    },
    /must be a directory/,
  ],
  ['is the state directory', (folder) => join(folder, 'state'), /inside the daemon's own/],
  [
    'is inside the state directory by another name',
    (folder) => {
      mkdirSync(join(folder, 'state'), { mode: 0o700 });
      symlinkSync('state', join(folder, 'link'));
      return join(folder, 'link', 'later');
    },
    /inside the daemon's own/,
  ],
];

describe.each([
  ['a thread', false],
  ['a process', true],
])('the watcher in %s', (_where, is_apart) => {
  let top: string;
  let store: MemoryStore;
  let watcher: Watcher;

  beforeEach(() => {
    top = mkdtempSync(join(tmpdir(), 'watcher-'));
    store = new MemoryStore();
    const log = pino({ level: 'silent' }) as Log;
    watcher = new Watcher({
      watch_dir: top,
      ignore: ['*.tmp'],
      own_paths: [],
      clock: systemClock,
      log,
      store,
      is_apart,
    });
  });

  afterEach(async () => {
    await watcher.stop();
    rmSync(top, { recursive: true, force: true });
  });

  const told = () =>
    store.events.map(({ payload }) => `${payload.event_type} ${payload.path.slice(top.length + 1)}`);

  it('watches in its thread and commits to the store', async () => {
    writeFileSync(join(top, 'a'), '');
    await watcher.start();
    expect(watcher.status()).toMatchObject({ state: 'watching', index_size: 1, degraded: null });
    writeFileSync(join(top, 'b.tmp'), '');
    writeFileSync(join(top, 'b'), '');
    await until(() => told().length > 0, told);
    expect(told()).toEqual(['create b']);
    await until(
      () => watcher.status().events === 1,
      () => watcher.status(),
    );
    expect(watcher.status()).toMatchObject({ events: 1, directories_watched: 1, reconciles: { start: 1 } });
  });

  it('returns from a comparison when the differences are committed', async () => {
    await watcher.start();
    mkdirSync(join(top, 'd'));
    writeFileSync(join(top, 'd', 'f'), '');
    await watcher.reconcile('resume');
    expect(told()).toEqual(['create d', 'create d/f']);
    expect(watcher.status().reconciles).toMatchObject({ resume: 1 });
  });

  it('starts a new thread when one fails, and finds what was missed', async () => {
    writeFileSync(join(top, 'a'), '');
    await watcher.start();
    const commit = store.commit.bind(store);
    store.commit = () => Promise.reject(new Error('a fault of the store'));
    appendFileSync(join(top, 'a'), 'x');
    await until(
      () => watcher.status().degraded !== null,
      () => watcher.status(),
    );
    expect(watcher.status().degraded).toMatch(/is being restarted: a fault of the store/);
    store.commit = commit;
    await until(
      () => told().length > 0 && watcher.status().degraded === null,
      () => watcher.status(),
    );
    expect(told()).toEqual(['write a']);
  });

  it('may be stopped before it has started, and twice', async () => {
    const starting = watcher.start();
    await watcher.stop();
    await watcher.stop();
    expect(watcher.status().state).toBe('stopped');
    await starting;
  });
});

it.each(BAD)('a watch_dir that %s is refused at the start, with the reason', async (_kind, make, reason) => {
  const folder = scratchFolder();
  const watch_dir = make(folder);
  for (const webhook of [UNHEARD, []]) {
    const options = { state_dir: join(folder, 'state') };
    const { code, stderr } = await runSandboxd(['--watch-dir', watch_dir, ...webhook], options);
    const lines = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
    expect(code).toBe(2);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/--watch-dir/);
    expect(lines[0]).toMatch(reason);
  }
});

describe('a watch_dir that is refused', () => {
  let top: string;

  beforeEach(() => {
    top = scratchFolder();
  });

  const refusal = problemOfWatchDir;

  it('is one that is not absolute', () => {
    expect(refusal('src', [])).toMatch(/must be an absolute path/);
  });

  it('is a file', () => {
    writeFileSync(join(top, 'f'), '');
    expect(refusal(join(top, 'f'), [])).toMatch(/must be a directory/);
  });

  it('is one inside the state directory, under any name', () => {
    mkdirSync(join(top, 'state'));
    symlinkSync(join(top, 'state'), join(top, 'link'));
    expect(refusal(join(top, 'state'), [join(top, 'state')])).toMatch(/inside the daemon's own/);
    expect(refusal(join(top, 'state', 'not', 'yet'), [join(top, 'state')])).toMatch(
      /inside the daemon's own/,
    );
    expect(refusal(join(top, 'link', 'x'), [join(top, 'state')])).toMatch(/inside the daemon's own/);
  });

  it('is not one that does not exist or that contains the state directory', () => {
    expect(refusal(join(top, 'later'), [])).toBeNull();
    expect(refusal(top, [join(top, 'state')])).toBeNull();
    expect(existsSync(join(top, 'later'))).toBe(false);
  });
});

test.runIf(CAN_HANG)(
  `a watch_dir that hangs holds up neither the start nor the end${unlessHangs}`,
  async () => {
    const mount = await hungMount({ 'dir/file': { text: '', mode: 0o644 } });
    await mount.hang();
    const clock = new ManualClock();
    const log = createLog('silent');
    const watch_dir = join(mount.path, 'dir');
    const store = new MemoryStore();
    const watcher = new Watcher({ watch_dir, ignore: [], own_paths: [], clock, log, store, is_apart: true });
    const started = watcher.start();
    await eventually(async () => expect(await mount.waiting()).toBe(1));
    await clock.advance(10_000);
    await started;
    expect(watcher.status().degraded).toBe('the file system of watch_dir does not answer');
    await mount.answer();
    await eventually(() =>
      expect(watcher.status()).toMatchObject({
        state: 'watching',
        degraded: expect.stringContaining('fuse'),
      }),
    );
    await mount.hang();
    const stopped = watcher.stop();
    await clock.advance(2_000);
    await stopped;
  },
);
