import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Benchmark } from './support/bench.ts';
import { sleepMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { figure, type Row, skipped } from './support/table.ts';

const TRACER = 'strace';
const PUBLISHES = sized(20, 3);
const WARM_UP = 3;
const INTERVAL_MS = 100;
/** The consumer answers so late that what is recorded then falls outside of every publish. */
const CONSUMER_DELAY_MS = 40;
const SETTLE_MS = 1_000;
const ATTACH_MS = 1_500;
const LOAD_MS = sized(2_000, 200);

/** Counts the syncs that stand between a publish and its answer. */
export const syncs: Benchmark = {
  name: 'syncs',
  async run(bench) {
    const name = 'syncs between a lone publish and its answer';
    if (spawnSync(TRACER, ['-V']).status !== 0) return bench.report(skipped(name, 'no strace'));
    const load = await bench.load();
    const { url: webhook_url } = await bench.consumer({ port: 0, delay_ms: CONSUMER_DELAY_MS });
    const { url, pid } = await bench.daemon({ webhook_url });
    // The first one starts the writer's thread, which opens the outbox with syncs of its own.
    await load.ask('publish', { url, connections: 1, publishes: WARM_UP, interval_ms: INTERVAL_MS });
    await sleepMs(SETTLE_MS);
    const trace = join(bench.folder(), 'trace');
    const lone = await traced(pid, trace, () =>
      load.ask('publish', {
        ...{ url, connections: 1, publishes: PUBLISHES, interval_ms: INTERVAL_MS, keeps: true },
      }),
    );
    if (!lone) return bench.report(skipped(name, 'strace may not attach'));
    const between = lone.result.kept.map(
      ({ sent_ms, acknowledged_ms }) =>
        lone.ended_ms.filter((at_ms) => at_ms > sent_ms && at_ms < acknowledged_ms).length,
    );
    bench.report({
      name,
      bare: `${PUBLISHES} publishes`,
      ours: `${Math.min(...between)} to ${Math.max(...between)} each`,
      ...{ ratio: '', wanted: '1 each', verdict: verdictOn(between) },
    });
    const many = await traced(pid, trace, () =>
      load.ask('publish', { url, connections: 64, duration_ms: LOAD_MS }),
    );
    if (!many) return;
    const { acknowledged } = many.result;
    bench.report({
      name: 'syncs while 64 publish',
      bare: `${figure(acknowledged)} publishes`,
      ours: `${figure(many.ended_ms.length)} syncs`,
      ratio: `${figure(many.ended_ms.length / acknowledged)} ×`,
      wanted: '< 1 ×',
      verdict: many.ended_ms.length < acknowledged ? 'ok' : 'broken',
    });
  },
};

/** An answer without a sync breaks a promise; one more is what else the disk was asked for meanwhile, and only slower. */
function verdictOn(between: readonly number[]): Row['verdict'] {
  if (between.some((count) => count === 0)) return 'broken';
  return between.every((count) => count === 1) ? 'ok' : 'missed';
}

/** Runs `work` while the syncs of a process are traced; tells when each ended. Null where tracing is refused. */
async function traced<Result>(
  pid: number,
  file: string,
  work: () => Promise<Result>,
): Promise<{ result: Result; ended_ms: number[] } | null> {
  const tracer = spawn(TRACER, [
    ...['-f', '-ttt', '-T', '-e', 'trace=fsync,fdatasync,sync_file_range,msync', '-o', file],
    ...['-p', String(pid)],
  ]);
  await Promise.race([once(tracer, 'exit'), sleepMs(ATTACH_MS)]);
  if (tracer.exitCode !== null) return null;
  const result = await work();
  await sleepMs(CONSUMER_DELAY_MS * 2);
  await end(tracer);
  return { result, ended_ms: syncEnds(readFileSync(file, 'latin1')) };
}

/** When each sync ended, on the clock that the processes share; an interrupted line counts where it resumes. */
function syncEnds(trace: string): number[] {
  const to_shared_ms = Number(process.hrtime.bigint()) / 1e6 - performance.timeOrigin - performance.now();
  return trace.split('\n').flatMap((line) => {
    const match = /^\d+ +([\d.]+) .*= 0 <([\d.]+)>$/.exec(line);
    if (!match) return [];
    const is_resumed = line.includes('resumed>');
    return [Number(match[1]) * 1000 + (is_resumed ? 0 : Number(match[2]) * 1000) + to_shared_ms];
  });
}

async function end(tracer: ChildProcess): Promise<void> {
  const ended = once(tracer, 'exit');
  tracer.kill('SIGINT');
  await ended;
}
