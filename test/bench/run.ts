import { parseArgs } from 'node:util';
import { claimAdmission } from './admission.ts';
import { deliver } from './deliver.ts';
import { drain } from './drain.ts';
import { directoryArchive, fileArchive } from './files/file-archive.ts';
import { fileList } from './files/file-list.ts';
import { fileManager } from './files/file-manager.ts';
import { fileMemory } from './files/file-memory.ts';
import { filePublish } from './files/file-publish.ts';
import { fileDownload, fileUpload } from './files/file-transfer.ts';
import { footprint } from './footprint.ts';
import { idle } from './idle.ts';
import { kill } from './kill.ts';
import { killRounds } from './kill-rounds.ts';
import { latency } from './latency.ts';
import { memory } from './memory.ts';
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
import { processChurn } from './process-churn.ts';
import { processFlood } from './process-flood.ts';
import { processOutput } from './process-output.ts';
import { processStart, processStorm } from './process-start.ts';
import { lonePublish, publish, slowDisk } from './publish.ts';
import { localDecision, redisDecision } from './quota.ts';
import { claimsForOnePlace, usageCursor } from './quota-races.ts';
import { restart } from './restart.ts';
import { Bench, type Benchmark } from './support/bench.ts';
import { PROGRAM } from './support/daemon.ts';
import { type Row, table } from './support/table.ts';
import { syncs } from './syncs.ts';
import { warmPool } from './warm-pool.ts';
import { watch } from './watch.ts';
import { watchBurst } from './watch-burst.ts';

/**
 * Measures the daemon as a whole against the bare operation in the same run:
 * node test/bench/run.ts [--rounds 200] [name…]. Exits 1 where something that must never happen did.
 */
const BENCHMARKS: Benchmark[] = [
  publish,
  lonePublish,
  slowDisk,
  deliver,
  latency,
  drain,
  outage,
  restart,
  memory,
  idle,
  footprint,
  warmPool,
  kill,
  killRounds,
  syncs,
  processStart,
  processStorm,
  processFlood,
  processOutput,
  processChurn,
  localDecision,
  redisDecision,
  claimAdmission,
  claimsForOnePlace,
  usageCursor,
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
  watchBurst,
  fileDownload,
  fileUpload,
  fileMemory,
  fileArchive,
  directoryArchive,
  fileList,
  filePublish,
  fileManager,
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '200' } },
});
const unknown = positionals.find((name) => !BENCHMARKS.some((benchmark) => benchmark.name === name));
if (unknown !== undefined) {
  console.error(`${unknown} is none of: ${BENCHMARKS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}

const rows: Row[] = [];
console.log(`measuring ${PROGRAM}`);
for (const benchmark of BENCHMARKS) {
  if (positionals.length > 0 && !positionals.includes(benchmark.name)) continue;
  await measure(benchmark);
}
console.log(`\n${table(rows)}`);
if (rows.some(({ verdict }) => verdict === 'broken')) process.exitCode = 1;

async function measure(benchmark: Benchmark): Promise<void> {
  const report = (row: Row) => {
    rows.push(row);
    console.log(`  ${row.name}: ${row.bare} → ${row.ours} ${row.ratio} (${row.wanted}) ${row.verdict}`);
  };
  const bench = new Bench(report, Number(values.rounds));
  try {
    await benchmark.run(bench);
  } catch (error) {
    const ours = (error as Error).message;
    report({ name: benchmark.name, bare: '', ours, ratio: '', wanted: 'no error', verdict: 'broken' });
  } finally {
    await bench.end();
  }
}
