import type { Benchmark } from './support/bench.ts';
import { type Daemon, DOWN_URL } from './support/daemon.ts';
import type { FileChangesVerbs } from './support/file-changes.ts';
import type { LoadVerbs } from './support/load.ts';
import { nowMs, percentile, sleepMs } from './support/numbers.ts';
import { memoryBytes } from './support/process-figures.ts';
import type { Program } from './support/program.ts';
import { sized } from './support/size.ts';
import { comparison, figure } from './support/table.ts';

const CHANGES = sized(100_000, 1_000);
const DIRECTORIES = sized(1_000, 20);
/** Before the burst, and as many after it: a machine that others slow down meanwhile does so to both. */
const QUIET_ROUNDS = sized(5, 1);
const ROUND_MS = sized(2_000, 300);
const INTERVAL_MS = 10;
const SAMPLE_MS = 50;
const TOLD_WITHIN_MS = 180_000;
const P99_RATIO = 3;
const MORE_MEMORY_BYTES = 100e6;

/**
 * Many changes at once: publishes go on beside them, and memory stays where it was. The same changes in a folder that
 * nobody watches tell what the disk and the processors take by themselves.
 */
export const watchBurst: Benchmark = {
  name: 'watch-burst',
  async run(bench) {
    const load = await bench.load();
    const changes = await bench.program<FileChangesVerbs>(
      new URL('./support/file-changes.ts', import.meta.url),
    );
    const [watched, unwatched] = [bench.folder(), bench.folder()];
    for (const dir of [watched, unwatched]) {
      await changes.ask('tree', { dir, directories: DIRECTORIES, files_per_directory: 0 });
    }
    const daemon = await bench.daemon({ webhook_url: DOWN_URL, options: ['--watch-dir', watched] });
    await round(load, daemon);
    const quiet_ms = await quiet(load, daemon);
    const alone = await during({ load, daemon, changes }, unwatched, () => CHANGES);
    const before = (await daemon.outbox()).pending;
    const memory = new Highest(() => memoryBytes(daemon.pid));
    const burst = await during({ load, daemon, changes }, watched, ({ pending }, published) => {
      return pending - before - published;
    });
    const more_bytes = memory.end();
    quiet_ms.push(...(await quiet(load, daemon)));
    const took = `made in ${figure(burst.made_ms / 1000)} s, told after ${figure(burst.told_ms / 1000)} s`;
    const p99 = { unit: 'ms p99', bare: percentile(quiet_ms, 0.99), wanted: P99_RATIO } as const;
    const row = (name: string, { publish_ms }: Burst) =>
      comparison({ name, ...p99, ours: percentile(publish_ms, 0.99), wants: 'at most' });
    bench.report({
      ...row(`publish beside ${CHANGES} changes that nobody watches; bare: quiet`, alone),
      ...{ wanted: 'told', verdict: 'ok' },
    });
    bench.report(row(`publish beside ${CHANGES} watched changes, ${took}; bare: quiet`, burst));
    bench.report({
      name: `memory beside ${CHANGES} watched changes; bare: before`,
      ...{ bare: `${figure(memory.first / 1e6)} MB`, ours: `+${figure(more_bytes / 1e6)} MB`, ratio: '' },
      wanted: `< +${MORE_MEMORY_BYTES / 1e6} MB`,
      verdict: more_bytes < MORE_MEMORY_BYTES ? 'ok' : 'missed',
    });
  },
};

interface Parts {
  load: Program<LoadVerbs>;
  daemon: Daemon;
  changes: Program<FileChangesVerbs>;
}

interface Burst {
  /** How long each publish took meanwhile. */
  publish_ms: number[];
  made_ms: number;
  told_ms: number;
}

/** Publishes while changes are made, and until `told` says that all of them are. */
async function during(
  { load, daemon, changes }: Parts,
  dir: string,
  told: (outbox: { pending: number }, published: number) => number,
): Promise<Burst> {
  const began_ms = nowMs();
  let made_ms = Number.NaN;
  const settings = { dir, directories: DIRECTORIES, files: CHANGES, operation: 'create' } as const;
  const making = changes.ask('change', settings).then(() => {
    made_ms = nowMs() - began_ms;
  });
  const publish_ms: number[] = [];
  do {
    if (nowMs() - began_ms > TOLD_WITHIN_MS) throw new Error(`not all of ${CHANGES} changes were told`);
    publish_ms.push(...(await round(load, daemon)));
  } while (Number.isNaN(made_ms) || told(await daemon.outbox(), publish_ms.length) < CHANGES);
  await making;
  return { publish_ms, made_ms, told_ms: nowMs() - began_ms };
}

async function quiet(load: Program<LoadVerbs>, daemon: Daemon): Promise<number[]> {
  const publish_ms: number[] = [];
  for (let i = 0; i < QUIET_ROUNDS; i++) publish_ms.push(...(await round(load, daemon)));
  return publish_ms;
}

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
