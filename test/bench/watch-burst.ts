import type { Benchmark } from './support/bench.ts';
import { type Daemon, DOWN_URL } from './support/daemon.ts';
import type { FileChangesVerbs } from './support/file-changes.ts';
import type { LoadVerbs } from './support/load.ts';
import { nowMs, percentile, sleepMs } from './support/numbers.ts';
import { memoryBytes } from './support/process-figures.ts';
import type { Program } from './support/program.ts';
import { comparison, figure } from './support/table.ts';

const CHANGES = 100_000;
const DIRECTORIES = 1_000;
const QUIET_ROUNDS = 10;
const ROUND_MS = 2_000;
const INTERVAL_MS = 10;
const SAMPLE_MS = 50;
const TOLD_WITHIN_MS = 180_000;
const P99_RATIO = 3;
const MORE_MEMORY_BYTES = 100e6;

/** Many changes at once: publishes go on beside them, and memory stays where it was. */
export const watchBurst: Benchmark = {
  name: 'watch-burst',
  async run(bench) {
    const load = await bench.load();
    const dir = bench.folder();
    const changes = await bench.program<FileChangesVerbs>(
      new URL('./support/file-changes.ts', import.meta.url),
    );
    await changes.ask('tree', { dir, directories: DIRECTORIES, files_per_directory: 0 });
    const daemon = await bench.daemon({ webhook_url: DOWN_URL, options: ['--watch-dir', dir] });
    await round(load, daemon);
    const quiet_ms: number[] = [];
    for (let i = 0; i < QUIET_ROUNDS; i++) quiet_ms.push(...(await round(load, daemon)));
    const before = (await daemon.outbox()).pending;
    const memory = new Highest(() => memoryBytes(daemon.pid));
    const began_ms = nowMs();
    const settings = { dir, directories: DIRECTORIES, files: CHANGES, operation: 'create' } as const;
    const making = changes.ask('change', settings).then(() => nowMs() - began_ms);
    const burst_ms: number[] = [];
    for (let told = 0; told < CHANGES; told = (await daemon.outbox()).pending - before - burst_ms.length) {
      if (nowMs() - began_ms > TOLD_WITHIN_MS) throw new Error(`${told} of ${CHANGES} changes were told`);
      burst_ms.push(...(await round(load, daemon)));
    }
    const told_ms = nowMs() - began_ms;
    const more_bytes = memory.end();
    const took = `${CHANGES} changes in ${figure((await making) / 1000)} s, told after ${figure(told_ms / 1000)} s`;
    bench.report(
      comparison({
        name: `publish while there are ${took}; bare: quiet`,
        ...{ bare: percentile(quiet_ms, 0.99), ours: percentile(burst_ms, 0.99) },
        ...{ unit: 'ms p99', wanted: P99_RATIO, wants: 'at most' },
      }),
    );
    bench.report({
      name: `memory while there are ${CHANGES} changes; bare: before`,
      ...{ bare: `${figure(memory.first / 1e6)} MB`, ours: `+${figure(more_bytes / 1e6)} MB`, ratio: '' },
      wanted: `< +${MORE_MEMORY_BYTES / 1e6} MB`,
      verdict: more_bytes < MORE_MEMORY_BYTES ? 'ok' : 'missed',
    });
  },
};

/** Publishes at a steady rate for a while; returns how long each took, in ms. */
async function round(load: Program<LoadVerbs>, { url }: Daemon): Promise<number[]> {
  const shape = { url, connections: 4, interval_ms: INTERVAL_MS, duration_ms: ROUND_MS, keeps: true };
  const { kept, refused } = await load.ask('publish', shape);
  if (refused > 0) throw new Error(`${refused} publishes were refused`);
  return kept.map(({ sent_ms, acknowledged_ms }) => acknowledged_ms - sent_ms);
}

/** Samples a value, and knows the first and the highest. */
class Highest {
  readonly first: number;
  #most: number;
  #ended = false;

  constructor(sample: () => number) {
    this.first = sample();
    this.#most = this.first;
    void this.#sample(sample);
  }

  async #sample(sample: () => number): Promise<void> {
    while (!this.#ended) {
      this.#most = Math.max(this.#most, sample());
      await sleepMs(SAMPLE_MS);
    }
  }

  /** How much higher than the first it was. */
  end(): number {
    this.#ended = true;
    return this.#most - this.first;
  }
}
