import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readCommits } from '../support/watch/commit-file.ts';
import { Mirror } from '../support/watch/mirror.ts';
import { Program } from '../support/watch/program.ts';
import { until } from '../support/watch/watched-tree.ts';

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

const paths = (dir: string): string[] =>
  readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    return entry.isDirectory() ? [path, ...paths(path)] : [path];
  });

describe('the watch as a process', () => {
  it('tells the same tree as the disk after kills in the middle of a burst', async () => {
    program = new Program(top, commits);
    await program.ready();
    for (let round = 0; round < 3; round++) {
      const told = program.told().length;
      for (let i = 0; i < 400; i++) {
        mkdirSync(join(top, `${round}`, `d${i % 20}`), { recursive: true });
        writeFileSync(join(top, `${round}`, `d${i % 20}`, `f${i}`), 'x');
        if (i % 3 === 0)
          renameSync(join(top, `${round}`, `d${i % 20}`, `f${i}`), join(top, `m${round}-${i}`));
        if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      const killed = program;
      await until(
        () => killed.told().length > told,
        () => killed.told(),
      );
      await killed.end('SIGKILL');
      program = new Program(top, commits);
      await program.ready();
    }
    const last = program;
    const count = last.told().length;
    await last.end('SIGTERM');
    const mirror = new Mirror([], () => null);
    for (const { events } of readCommits(readFileSync(commits, 'utf8'))) {
      for (const { payload } of events) mirror.apply(payload);
    }
    expect(mirror.entries().map(([path]) => path)).toEqual(paths(top).sort());
    program = new Program(top, commits);
    await program.ready();
    expect(program.told()).toHaveLength(count);
  }, 120_000);
});
