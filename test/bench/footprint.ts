import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RunningProgram } from '../support/running-program.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import { makeTree, NODE, SANDBOXD, TREE } from './support/image.ts';
import { median, nowMs, sleepMs } from './support/numbers.ts';
import { cpuMs, memoryBytes, wakeUps } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { comparison, figure } from './support/table.ts';

const STARTS = sized(15, 1);
const IDLE_MS = sized(30_000, 500);
const START_RATIO = 2;
const MORE_MEMORY_BYTES = 18e6;
const CPU_SHARE = 0.002;
/** Of one thread; several may each have one slow timer. */
const WAKE_UPS_PER_S = 3;
const IDLE_PROGRAM = 'setInterval(() => {}, 2 ** 30)';
const QUIET = { stdout: 'ignore', stderr: 'ignore' } as const;

/** The tree that images hold against its own bare Node: start, memory and CPU when idle, size. */
export const footprint: Benchmark = {
  name: 'footprint',
  async run(bench) {
    makeTree();
    await startUp(bench);
    await atRest(bench);
    size(bench);
  },
};

/** In turn, so that whatever else the machine does slows both. */
async function startUp(bench: Bench): Promise<void> {
  const bare: number[] = [];
  const ours: number[] = [];
  for (let i = 0; i < STARTS; i++) {
    const started_ms = nowMs();
    await new RunningProgram([NODE, '-e', '0'], QUIET).exited;
    bare.push(nowMs() - started_ms);
    ours.push(await untilListening(bench));
  }
  const ratio = median(ours.map((value, i) => value / (bare[i] ?? Number.NaN)));
  bench.report(
    comparison({
      ...{ name: 'process start to listening; bare: node -e 0', unit: 'ms', wants: 'at most' },
      ...{ bare: median(bare), ours: median(ours), ratio, wanted: START_RATIO },
    }),
  );
}

async function untilListening(bench: Bench): Promise<number> {
  const command = [SANDBOXD, '--state-dir', join(bench.folder(), 'state'), '--port', '0'];
  const started_ms = nowMs();
  const daemon = new RunningProgram(command, { stdout: 'ignore' });
  await daemon.logged('listening');
  const took_ms = nowMs() - started_ms;
  await daemon.stop();
  return took_ms;
}

/** With a consumer that has taken the ready event, and nothing else happening. */
async function atRest(bench: Bench): Promise<void> {
  const { url } = await bench.consumer({ port: 0 });
  const bare = new RunningProgram([NODE, '-e', IDLE_PROGRAM], QUIET);
  const args = ['--state-dir', join(bench.folder(), 'state'), '--port', '0', '--webhook-url', url];
  const ours = new RunningProgram([SANDBOXD, ...args], { stdout: 'ignore' });
  await ours.logged('ready');
  const { pid } = ours;
  const cpu_ms = cpuMs(pid);
  await sleepMs(IDLE_MS / 2);
  const [half_cpu_ms, half_woken] = [cpuMs(pid), wakeUps(pid)];
  await sleepMs(IDLE_MS / 2);
  const [our_bytes, bare_bytes] = [memoryBytes(pid), memoryBytes(bare.pid)];
  bench.report({
    name: `resident memory after ${IDLE_MS / 1000} s; bare: node that waits`,
    ...{
      bare: `${figure(bare_bytes / 1e6)} MB`,
      ours: `+${figure((our_bytes - bare_bytes) / 1e6)} MB`,
      ratio: '',
    },
    wanted: `≤ +${MORE_MEMORY_BYTES / 1e6} MB`,
    verdict: our_bytes - bare_bytes <= MORE_MEMORY_BYTES ? 'ok' : 'missed',
  });
  const share = (cpuMs(pid) - half_cpu_ms) / (IDLE_MS / 2);
  const per_second = ((wakeUps(pid) - half_woken) / IDLE_MS) * 2_000;
  bench.report({
    name: 'idle CPU, and how often any thread wakes',
    ...{ bare: '', ours: `${figure(share * 100)} %, ${figure(per_second)}/s`, ratio: '' },
    wanted: `< ${CPU_SHARE * 100} %, ≤ ${WAKE_UPS_PER_S}/s`,
    verdict: share < CPU_SHARE && per_second <= WAKE_UPS_PER_S ? 'ok' : 'missed',
  });
  if (half_cpu_ms < cpu_ms) throw new Error('the CPU time went back');
  await ours.stop();
  await bare.stop();
}

/** What each megabyte of the tree is. */
function size(bench: Bench): void {
  const kinds: [name: string, pattern: RegExp][] = [
    ['Node', /\/node$/],
    ['addons', /\.node$/],
    ['programs', /\.cjs$/],
    ['compiled beforehand', /\.cache$/],
    ['licences and manifest', /./],
  ];
  const sizes = new Map<string, number>();
  for (const path of filesOf(TREE)) {
    const [kind = ''] = kinds.find(([, pattern]) => pattern.test(path)) ?? [];
    sizes.set(kind, (sizes.get(kind) ?? 0) + statSync(path).size);
  }
  const total = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  const parts = kinds.map(([kind]) => `${kind} ${figure((sizes.get(kind) ?? 0) / 1e6)}`);
  bench.report({
    name: `size of the tree, in MB: ${parts.join(', ')}`,
    ...{ bare: `${figure((sizes.get('Node') ?? 0) / 1e6)} MB`, ours: `${figure(total / 1e6)} MB`, ratio: '' },
    ...{ wanted: 'told', verdict: 'ok' },
  });
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
