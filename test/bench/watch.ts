import { spawnSync } from 'node:child_process';
import type { Bench, Benchmark } from './support/bench.ts';
import type { ChangeReaderVerbs } from './support/change-reader.ts';
import { DOWN_URL } from './support/daemon.ts';
import { type FileChangesVerbs, type Made, OPERATIONS, type Operation } from './support/file-changes.ts';
import { nowMs, percentile, sleepMs } from './support/numbers.ts';
import { cpuMs, inotifyWatches, memoryBytes } from './support/process-figures.ts';
import type { Program } from './support/program.ts';
import { IS_SHORT, sized } from './support/size.ts';
import { figure, skipped, type Verdict } from './support/table.ts';

const SIZES = IS_SHORT ? [1_000] : [1_000, 10_000, 20_000, 100_000];
const FILES_PER_DIRECTORY = 20;
/** Of each operation: one after another, to see how long each takes, and all at once, to see what they cost. */
const PACED_FILES = sized(200, 10);
const PACE_MS = 5;
const BURST_FILES = sized(2_000, 50);
const SETTLE_MS = sized(2_000, 200);
const TOLD_WITHIN_MS = 60_000;
/** What a watch may cost in memory: for 20 000 files in 1 000 directories. Source: contract section 6. */
const MORE_MEMORY_MB = 60;
const MORE_MEMORY_FILES = 20_000;

interface Figures {
  ready_ms: number;
  watches: number;
  memory_bytes: number;
  cpu_us_per_change: number;
  latencies_ms: Map<Operation, number[]>;
}

interface Parts {
  changes: Program<FileChangesVerbs>;
  reader: Program<ChangeReaderVerbs>;
  dir: string;
  directories: number;
}

/** The watch beside `inotifywait -m -r`, on the same operations in trees of several sizes. */
export const watch: Benchmark = {
  name: 'watch',
  async run(bench) {
    if (spawnSync('inotifywait', ['--help']).error) {
      return bench.report(skipped('watch beside inotifywait -m -r', 'no inotifywait (inotify-tools)'));
    }
    const unwatched = await withoutWatch(bench);
    for (const files of SIZES) {
      const directories = files / FILES_PER_DIRECTORY;
      const dir = bench.folder();
      const changes = await bench.program<FileChangesVerbs>(
        new URL('./support/file-changes.ts', import.meta.url),
      );
      await changes.ask('tree', { dir, directories, files_per_directory: FILES_PER_DIRECTORY });
      const bare = await ofInotifywait(bench, { changes, dir, directories });
      const { first, again_ms } = await ofDaemon(bench, { changes, dir, directories });
      tell(bench, { files, directories, bare, ours: first, again_ms, unwatched });
    }
  },
};

/** What the daemon itself takes. */
async function withoutWatch(bench: Bench): Promise<Pick<Figures, 'ready_ms' | 'memory_bytes'>> {
  const began_ms = nowMs();
  const daemon = await bench.daemon({ webhook_url: DOWN_URL });
  const ready_ms = nowMs() - began_ms;
  await sleepMs(SETTLE_MS);
  const memory_bytes = memoryBytes(daemon.pid);
  await daemon.stop();
  return { ready_ms, memory_bytes };
}

const newReader = (bench: Bench) =>
  bench.program<ChangeReaderVerbs>(new URL('./support/change-reader.ts', import.meta.url));

async function ofInotifywait(bench: Bench, parts: Omit<Parts, 'reader'>): Promise<Figures> {
  const reader = await newReader(bench);
  const { pid, ready_ms } = await reader.ask('inotifywait', { dir: parts.dir });
  const figures = await measure({ ...parts, reader }, pid);
  await reader.ask('end', null);
  return { ...figures, ready_ms };
}

async function ofDaemon(
  bench: Bench,
  parts: Omit<Parts, 'reader'>,
): Promise<{ first: Figures; again_ms: number }> {
  const reader = await newReader(bench);
  const settings = {
    webhook_url: DOWN_URL,
    state_dir: `${bench.folder()}/state`,
    options: ['--watch-dir', parts.dir],
  };
  const began_ms = nowMs();
  const daemon = await bench.daemon(settings);
  const ready_ms = nowMs() - began_ms;
  await reader.ask('follow', { url: daemon.url, ...daemon.authorization });
  const figures = await measure({ ...parts, reader }, daemon.pid);
  await reader.ask('end', null);
  await daemon.stop();
  const again_began_ms = nowMs();
  const again = await bench.daemon(settings);
  const again_ms = nowMs() - again_began_ms;
  await again.stop();
  return { first: { ...figures, ready_ms }, again_ms };
}

/** All but the time to be ready. */
async function measure(parts: Parts, pid: number): Promise<Omit<Figures, 'ready_ms'>> {
  await sleepMs(SETTLE_MS);
  const [memory_bytes, watches] = [memoryBytes(pid), inotifyWatches(pid)];
  const latencies_ms = new Map<Operation, number[]>();
  for (const operation of OPERATIONS) {
    const made = await change(parts, operation, PACED_FILES, PACE_MS);
    const told = new Map(await parts.reader.ask('told', null));
    latencies_ms.set(
      operation,
      made.map(([key, at_ms]) => (told.get(key) ?? Number.NaN) - at_ms),
    );
  }
  await parts.reader.ask('forget', null);
  const cpu_ms = cpuMs(pid);
  for (const operation of OPERATIONS) await change(parts, operation, BURST_FILES);
  const cpu_us_per_change = ((cpuMs(pid) - cpu_ms) * 1_000) / (BURST_FILES * OPERATIONS.length);
  await parts.reader.ask('forget', null);
  return { memory_bytes, watches, latencies_ms, cpu_us_per_change };
}

/** Makes changes and waits until each is told. */
async function change(
  { changes, reader, dir, directories }: Parts,
  operation: Operation,
  files: number,
  interval_ms?: number,
): Promise<Made[]> {
  const made = await changes.ask('change', { dir, directories, files, operation, interval_ms });
  const end_ms = nowMs() + TOLD_WITHIN_MS;
  for (;;) {
    const told = await reader.ask('count', operation);
    if (told >= files) return made;
    if (nowMs() > end_ms) throw new Error(`${told} of ${files} were told: ${operation}`);
    await sleepMs(20);
  }
}

interface Sides {
  files: number;
  directories: number;
  bare: Figures;
  ours: Figures;
  /** The time to be ready when the tree is known. */
  again_ms: number;
  unwatched: Pick<Figures, 'ready_ms' | 'memory_bytes'>;
}

function tell(bench: Bench, { files, directories, bare, ours, again_ms, unwatched }: Sides): void {
  const row = (what: string, bare: string, ours: string, wanted = 'told', is_ok = true) =>
    bench.report({
      name: `watch of ${files} files, ${what}; bare: inotifywait`,
      ...{ bare, ours, ratio: '', wanted, verdict: (is_ok ? 'ok' : 'missed') as Verdict },
    });
  const ms = (value: number) => `${figure(value)} ms`;
  row(
    'time to ready, then with the tree known; ours: beside a daemon without watch',
    ms(bare.ready_ms),
    `+${ms(ours.ready_ms - unwatched.ready_ms)}, +${ms(again_ms - unwatched.ready_ms)}`,
  );
  const most = directories + 1;
  row('inotify watches', `${bare.watches}`, `${ours.watches}`, `≤ ${most}`, ours.watches <= most);
  const more_mb = (ours.memory_bytes - unwatched.memory_bytes) / 1e6;
  const bound_mb = files <= MORE_MEMORY_FILES ? MORE_MEMORY_MB : Number.POSITIVE_INFINITY;
  row(
    'memory; ours: beside a daemon without watch',
    `${figure(bare.memory_bytes / 1e6)} MB`,
    `+${figure(more_mb)} MB`,
    Number.isFinite(bound_mb) ? `≤ +${bound_mb} MB` : 'told',
    more_mb <= bound_mb,
  );
  const us = (value: number) => `${figure(value)} µs`;
  row('CPU per change', us(bare.cpu_us_per_change), us(ours.cpu_us_per_change));
  for (const operation of OPERATIONS) {
    row(`${operation} told after (p50, p99)`, latency(bare, operation), latency(ours, operation));
  }
}

function latency({ latencies_ms }: Figures, operation: Operation): string {
  const values = latencies_ms.get(operation) ?? [];
  return `${figure(percentile(values, 0.5))}, ${figure(percentile(values, 0.99))} ms`;
}
