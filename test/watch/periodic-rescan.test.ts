import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IS_ROOT } from '../support/rights.ts';
import { Program } from '../support/watch/program.ts';
import { until } from '../support/watch/watched-tree.ts';

/** A user namespace of its own, in which the limit of watches is its own too. */
const LIMITED = [
  'unshare',
  '-U',
  '-r',
  'sh',
  '-c',
  'echo 3 > /proc/sys/user/max_inotify_watches && exec "$@"',
  '-',
];
const can_limit = spawnSync(LIMITED[0] as string, [...LIMITED.slice(1), 'true']).status === 0;

let base: string;
let top: string;
let commits: string;
let program: Program | null = null;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'watch-program-'));
  chmodSync(base, 0o777);
  top = join(base, 'w');
  commits = join(base, 'commits');
  mkdirSync(top);
});

afterEach(async () => {
  await program?.end('SIGKILL');
  rmSync(base, { recursive: true, force: true });
});

describe('a watch that the kernel does not fully support', () => {
  it.skipIf(!can_limit)(
    'compares at intervals what gets no watch, and says that it is degraded',
    async () => {
      for (const name of ['a', 'b', 'c', 'd']) mkdirSync(join(top, name));
      program = new Program(top, commits, '', { prefix: LIMITED });
      const running = program;
      expect(await running.ready()).toMatchObject({
        directories_watched: 3,
        directories_compared: 2,
        degraded: expect.stringMatching(/limit of inotify watches.*2 directories.*every 2 s/),
      });
      for (const name of ['a', 'b', 'c', 'd']) writeFileSync(join(top, name, 'f'), '');
      const wanted = ['a', 'b', 'c', 'd'].map((name) => `create ${join(top, name, 'f')}`);
      await until(
        () => wanted.every((event) => running.told().includes(event)),
        () => running.told(),
      );
    },
  );

  it.skipIf(!IS_ROOT)(
    'goes on where directories cannot be read, and reads them once they can be',
    async () => {
      for (const name of ['open', 'shut']) {
        mkdirSync(join(top, name));
        writeFileSync(join(top, name, 'f'), '');
        chownSync(join(top, name), 65534, 65534);
      }
      chmodSync(join(top, 'shut'), 0);
      program = new Program(top, commits, '', { uid: 65534 });
      const running = program;
      expect(await running.ready()).toMatchObject({
        directories_unreadable: 1,
        degraded: expect.stringContaining('cannot be read'),
      });
      writeFileSync(join(top, 'open', 'g'), '');
      await until(
        () => running.told().includes(`create ${join(top, 'open', 'g')}`),
        () => running.told(),
      );
      chmodSync(join(top, 'shut'), 0o755);
      await until(
        () => running.told().includes(`create ${join(top, 'shut', 'f')}`),
        () => running.told(),
      );
      expect(running.told()).not.toContain(`remove ${join(top, 'shut')}`);
    },
  );
});
