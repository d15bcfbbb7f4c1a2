import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { claimAdmission } from './admission.ts';
import { cliKeystroke } from './cli-keystroke.ts';
import { consoleFrames } from './console/frames.ts';
import { consoleLighthouse } from './console/lighthouse.ts';
import { deliver } from './deliver.ts';
import { drain, farConsumer } from './drain.ts';
import { directoryArchive, fileArchive } from './files/file-archive.ts';
import { fileList } from './files/file-list.ts';
import { fileManager } from './files/file-manager.ts';
import { fileMemory } from './files/file-memory.ts';
import { filePublish } from './files/file-publish.ts';
import { fileDownload, fileUpload } from './files/file-transfer.ts';
import { fleet } from './fleet.ts';
import { footprint } from './footprint.ts';
import { hostile } from './hostile.ts';
import { idle } from './idle.ts';
import { kill } from './kill.ts';
import { killRounds } from './kill-rounds.ts';
import { kubernetes } from './kubernetes/kubernetes.ts';
import { latency } from './latency.ts';
import { memory } from './memory.ts';
import { memoryAtWork } from './memory-at-work.ts';
import { neighbours } from './neighbours.ts';
import {
  networkDatagrams,
  networkIdle,
  networkLimit,
  networkNewcomer,
  networkNodes,
  networkUnlimited,
} from './network.ts';
import { networkClaim, networkDownload, networkLeft } from './network-sandboxes.ts';
import { outage } from './outage.ts';
import { portDownload, portEcho } from './ports/ports.ts';
import { processChurn } from './process-churn.ts';
import { processFirstByte } from './process-first-byte.ts';
import { processFlood } from './process-flood.ts';
import { processOutput } from './process-output.ts';
import { processStart, processStorm } from './process-start.ts';
import { lonePublish, publish, slowDisk } from './publish.ts';
import { localDecision, redisDecision } from './quota.ts';
import { claimsForOnePlace, usageCursor } from './quota-races.ts';
import { restart } from './restart.ts';
import { sandboxLife } from './sandbox-life.ts';
import { scrape } from './scrape.ts';
import { Bench, type Benchmark } from './support/bench.ts';
import { comparedTable, inBuilds } from './support/builds.ts';
import { DIST, PROGRAM } from './support/daemon.ts';
import { IS_SHORT } from './support/size.ts';
import { type Row, table } from './support/table.ts';
import { syncs } from './syncs.ts';
import { warmPool } from './warm-pool.ts';
import { watch } from './watch.ts';
import { watchBurst } from './watch-burst.ts';
import { watchCreates } from './watch-creates.ts';
import { watchWays } from './watch-ways.ts';

/**
 * Measures the programs as a whole against the bare operation in the same run:
 * node test/bench/run.ts [--rounds 200] [--short] [--against <dist of another build>] [name…]. Exits 1 where something
 * that must never happen did. README.md says how to read it.
 */
const BENCHMARKS: Benchmark[] = [
  publish,
  lonePublish,
  slowDisk,
  deliver,
  latency,
  drain,
  farConsumer,
  outage,
  restart,
  memory,
  memoryAtWork,
  idle,
  scrape,
  footprint,
  warmPool,
  kill,
  killRounds,
  syncs,
  processStart,
  processFirstByte,
  processStorm,
  processFlood,
  processOutput,
  processChurn,
  localDecision,
  redisDecision,
  claimAdmission,
  claimsForOnePlace,
  sandboxLife,
  fleet,
  usageCursor,
  hostile,
  neighbours,
  networkUnlimited,
  networkLimit,
  networkDatagrams,
  networkNewcomer,
  networkNodes,
  networkIdle,
  networkClaim,
  networkLeft,
  networkDownload,
  watch,
  watchCreates,
  watchBurst,
  watchWays,
  fileDownload,
  fileUpload,
  fileMemory,
  fileArchive,
  directoryArchive,
  fileList,
  filePublish,
  fileManager,
  cliKeystroke,
  portDownload,
  portEcho,
  kubernetes,
  consoleFrames,
  consoleLighthouse,
];

/** Of a row that stands for a benchmark which threw. */
const NO_ERROR = 'no error';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    short: { type: 'boolean', default: false },
    against: { type: 'string' },
  },
});
const rounds = values.rounds ?? (values.short ? '5' : '200');
const unknown = positionals.find((name) => !BENCHMARKS.some((benchmark) => benchmark.name === name));
if (unknown !== undefined) {
  console.error(`${unknown} is none of: ${BENCHMARKS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
const chosen = BENCHMARKS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));

const is_broken = await (values.against === undefined && values.short === IS_SHORT
  ? measureHere()
  : measureElsewhere());
if (is_broken) process.exitCode = 1;
// An open channel to the process that compares builds would keep this one alive.
if (process.connected) process.disconnect();

/** Whether something that must never happen did. */
async function measureHere(): Promise<boolean> {
  const rows: Row[] = [];
  console.log(`measuring ${PROGRAM}`);
  for (const benchmark of chosen) rows.push(...(await measure(benchmark)));
  console.log(`\n${table(rows)}`);
  return rows.some(isFailure);
}

/** In a process for each benchmark and build: builds are compared by what they do in turn. */
async function measureElsewhere(): Promise<boolean> {
  const builds = [DIST, ...(values.against === undefined ? [] : [resolve(values.against)])];
  const results = await inBuilds(
    chosen.map(({ name }) => name),
    { builds, rounds, is_short: values.short },
  );
  console.log(`\n${comparedTable(results, builds)}`);
  return results.some(({ row }) => isFailure(row));
}

/** In a short run only an error: its figures say nothing. */
function isFailure({ verdict, wanted }: Row): boolean {
  return values.short ? wanted === NO_ERROR : verdict === 'broken';
}

async function measure(benchmark: Benchmark): Promise<Row[]> {
  const rows: Row[] = [];
  const report = (row: Row) => {
    rows.push(row);
    process.send?.(row);
    console.log(`  ${row.name}: ${row.bare} → ${row.ours} ${row.ratio} (${row.wanted}) ${row.verdict}`);
  };
  const bench = new Bench(report, Number(rounds));
  try {
    await benchmark.run(bench);
  } catch (error) {
    const ours = (error as Error).message;
    report({ name: benchmark.name, bare: '', ours, ratio: '', wanted: NO_ERROR, verdict: 'broken' });
  } finally {
    await bench.end();
  }
  return rows;
}
