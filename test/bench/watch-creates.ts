import { spawnSync } from 'node:child_process';
import type { Bench, Benchmark } from './support/bench.ts';
import type { ChangeReaderVerbs } from './support/change-reader.ts';
import { DOWN_URL } from './support/daemon.ts';
import type { FileChangesVerbs } from './support/file-changes.ts';
import { nowMs, percentile, sleepMs } from './support/numbers.ts';
import { cpuMs } from './support/process-figures.ts';
import type { Program } from './support/program.ts';
import { sized } from './support/size.ts';
import { figure, skipped } from './support/table.ts';

const FILES = sized(10_000, 200);
const DIRECTORIES = sized(100, 5);
const CPU_MS = 2_000;
const LAG_MS = 1_000;
const TOLD_WITHIN_MS = 60_000;

interface Figures {
  cpu_ms: number;
  lag_ms: number;
}

/** Files made as fast as it goes: what the watch costs until the last is told, and how much later each is told. */
export const watchCreates: Benchmark = {
  name: 'watch-creates',
  async run(bench) {
    const name = `${FILES} files made at once`;
    if (spawnSync('inotifywait', ['--help']).error) {
      return bench.report(skipped(`${name}; bare: inotifywait`, 'no inotifywait (inotify-tools)'));
    }
    const bare = await ofInotifywait(bench);
    const ours = await ofDaemon(bench);
    bench.report({
      name: `${name}, CPU time in all; bare: inotifywait`,
      ...{ bare: `${figure(bare.cpu_ms)} ms`, ours: `${figure(ours.cpu_ms)} ms`, ratio: '' },
      ...{ wanted: `≤ ${CPU_MS} ms`, verdict: ours.cpu_ms <= CPU_MS ? 'ok' : 'missed' },
      measured: { ours: ours.cpu_ms, ratio: ours.cpu_ms / bare.cpu_ms },
    });
    bench.report({
      name: `${name}, told later by (p50); bare: inotifywait`,
      ...{ bare: `${figure(bare.lag_ms)} ms`, ours: `${figure(ours.lag_ms)} ms`, ratio: '' },
      ...{ wanted: `≤ ${LAG_MS} ms`, verdict: ours.lag_ms <= LAG_MS ? 'ok' : 'missed' },
      measured: { ours: ours.lag_ms, ratio: ours.lag_ms / bare.lag_ms },
    });
  },
};

async function ofInotifywait(bench: Bench): Promise<Figures> {
  return measure(bench, async (reader, dir) => (await reader.ask('inotifywait', { dir })).pid);
}

function ofDaemon(bench: Bench): Promise<Figures> {
  return measure(bench, async (reader, dir) => {
    const daemon = await bench.daemon({ webhook_url: DOWN_URL, options: ['--watch-dir', dir] });
    await reader.ask('follow', { url: daemon.url, ...daemon.authorization });
    return daemon.pid;
  });
}

/** In a tree of its own. `watch` begins it and gives the pid of whoever watches. */
async function measure(
  bench: Bench,
  watch: (reader: Program<ChangeReaderVerbs>, dir: string) => Promise<number>,
): Promise<Figures> {
  const dir = bench.folder();
  const changes = await bench.program<FileChangesVerbs>(
    new URL('./support/file-changes.ts', import.meta.url),
  );
  await changes.ask('tree', { dir, directories: DIRECTORIES, files_per_directory: 0 });
  const reader = await bench.program<ChangeReaderVerbs>(
    new URL('./support/change-reader.ts', import.meta.url),
  );
  const pid = await watch(reader, dir);
  await sleepMs(500);
  const before_ms = cpuMs(pid);
  const settings = { dir, directories: DIRECTORIES, files: FILES, operation: 'create' } as const;
  const made = await changes.ask('change', settings);
  const end_ms = nowMs() + TOLD_WITHIN_MS;
  while ((await reader.ask('count', 'create')) < FILES) {
    if (nowMs() > end_ms) throw new Error(`not all of ${FILES} were told`);
    await sleepMs(20);
  }
  const cpu_ms = cpuMs(pid) - before_ms;
  const told = new Map(await reader.ask('told', null));
  await reader.ask('end', null);
  const later_ms = made.map(([key, at_ms]) => (told.get(key) ?? Number.NaN) - at_ms);
  return { cpu_ms, lag_ms: percentile(later_ms, 0.5) };
}
