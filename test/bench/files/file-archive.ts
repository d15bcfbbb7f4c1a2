import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Bench, Benchmark } from '../support/bench.ts';
import { DOWN_URL } from '../support/daemon.ts';
import { nowMs } from '../support/numbers.ts';
import { childrenCpuMs, cpuMs, highest, memoryBytes } from '../support/process-figures.ts';
import { sized } from '../support/size.ts';
import { comparison, figure } from '../support/table.ts';
import { settled } from './transfers.ts';

const MIB = 1024 * 1024;
const FILES = sized(10_000, 100);
const FILES_PER_DIRECTORY = 100;
const DIRECTORIES = sized(60_000, 100);
const FILE_BYTES = 1_500;
const TURNS = sized(5, 1);

/** Small files in directories of 100; returns the tree's top. */
function smallFiles(folder: string): string {
  const top = join(folder, 'tree');
  for (let i = 0; i < FILES; i++) {
    const directory = join(top, `directory-${Math.floor(i / FILES_PER_DIRECTORY)}`);
    if (i % FILES_PER_DIRECTORY === 0) mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `file-${i}.txt`), String(i).padEnd(FILE_BYTES, 'x'));
  }
  return top;
}

/** Directories that each hold one more, ten deep. */
function manyDirectories(folder: string): string {
  const top = join(folder, 'tree');
  for (let i = 0; i < DIRECTORIES / 10; i++) {
    mkdirSync(join(top, `d${i}`, 'b/c/d/e/f/g/h/i/j'), { recursive: true });
  }
  return top;
}

interface Compared {
  make: (folder: string) => string;
  what: string;
  turns: number;
}

async function compare(bench: Bench, { make, what, turns }: Compared): Promise<void> {
  const folder = bench.folder();
  const tree = make(folder);
  const daemon = await bench.daemon({ webhook_url: DOWN_URL });
  const { authorization } = daemon.authorization;
  const url = (path: string) => `"${daemon.url}/api/v1/files/archive?path=${path}"`;
  const curl = `curl -sSf -H "authorization: ${authorization}"`;
  const idle = memoryBytes(daemon.pid);
  const most: number[] = [];
  const ways = {
    bare: (target: string) => `tar -cf - -C ${tree} . | tar -xf - -C ${target}`,
    packed: (target: string) => `${curl} ${url(tree)} | tar -xf - -C ${target}`,
    unpacked: (target: string) => `tar -cf - -C ${tree} . | ${curl} -T - ${url(target)}`,
  };
  const took: Record<keyof typeof ways, number[]> = { bare: [], packed: [], unpacked: [] };
  const cpu: typeof took = { bare: [], packed: [], unpacked: [] };
  const cpuNow = () => childrenCpuMs() + cpuMs(daemon.pid);
  for (let turn = 0; turn <= turns; turn++) {
    for (const way of ['bare', 'packed', 'unpacked'] as const) {
      const target = join(folder, `${way}-${turn}`);
      mkdirSync(target);
      await settled();
      const [began_ms, cpu_ms] = [nowMs(), cpuNow()];
      const run = promisify(execFile)('bash', ['-o', 'pipefail', '-c', ways[way](target)]);
      if (turn === 0 && way !== 'bare') most.push(await highest(run, () => memoryBytes(daemon.pid)));
      await run;
      if (turn > 0) {
        took[way].push(nowMs() - began_ms);
        cpu[way].push(cpuNow() - cpu_ms);
      }
      await promisify(execFile)('diff', ['-r', tree, target]);
    }
  }
  // A disk that is busy with something else takes ten times as long: the quickest turns are compared.
  const quickest = (way: keyof typeof ways, of = took) => Math.min(...of[way]);
  for (const way of ['packed', 'unpacked'] as const) {
    bench.report(
      comparison({
        name: `${what} ${way}; bare: tar | tar`,
        ...{ bare: 1000 / quickest('bare'), ours: 1000 / quickest(way) },
        ...{ unit: 'a second', wanted: 0.5, wants: 'at least' },
      }),
    );
    bench.report({
      name: `${what} ${way}, CPU time of both sides`,
      ...{ bare: `${quickest('bare', cpu)} ms`, ours: `${quickest(way, cpu)} ms` },
      ratio: `${figure(quickest('bare', cpu) / quickest(way, cpu))} ×`,
      ...{ wanted: 'told', verdict: 'ok' },
    });
  }
  bench.report({
    name: `memory meanwhile; bare: idle`,
    bare: `${figure(idle / MIB)} MiB`,
    ours: most.map((bytes) => `+${figure((bytes - idle) / MIB)}`).join(', '),
    ...{ ratio: '', wanted: 'told', verdict: 'ok' },
  });
}

/** Many small files, each direction through the daemon and the other half by tar. */
export const fileArchive: Benchmark = {
  name: 'file-archive',
  run: (bench) => compare(bench, { make: smallFiles, what: `${FILES} small files`, turns: TURNS }),
};

export const directoryArchive: Benchmark = {
  name: 'directory-archive',
  run: (bench) => compare(bench, { make: manyDirectories, what: `${DIRECTORIES} directories`, turns: 1 }),
};
