import { randomInt } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type AttackOutcome,
  attack,
  lostOf,
  type Parties,
  parties,
  type Target,
} from '../support/hostile/attack.ts';
import type { ReceivedEvent } from '../support/hostile/receiver.ts';
import { helpersOf, residentBytes } from '../support/hostile/samples.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import { SECRET } from './support/daemon.ts';
import { percentile, sleepMs } from './support/numbers.ts';
import { IS_SHORT, sized } from './support/size.ts';
import { figure } from './support/table.ts';

const MB = 1e6;
const CLIENTS = sized(64, 8);
const DURATION_MS = sized(60_000, 2_000);
const REST_MS = 600_000;
const DRAINED_WITHIN_MS = sized(300_000, 60_000);
/** The default, not that of other benchmarks. */
const OPTIONS = ['--outbox-max-bytes', String(256 * 2 ** 20)];
const RESIDENT_MAX_MB = 200;
/** Twice what a server needs that stores nothing, where that is more than the bound. */
const BARE_SHARE = 2;

interface Side {
  outcome: AttackOutcome;
  received: ReceivedEvent[];
}

/** Many clients that do all that is allowed: how long honest ones wait meanwhile, and what the daemon's memory is. */
export const hostile: Benchmark = {
  name: 'hostile',
  async run(bench) {
    const seed = Number(process.env.HOSTILE_SEED ?? randomInt(2 ** 31));
    console.log(`  HOSTILE_SEED=${seed}`);
    const bare = await bareSide(bench, seed);
    const { side: ours, daemon } = await ourSide(bench, seed);
    for (const [name, bound_ms, figures] of TIMES)
      report(bench, `${CLIENTS} hostile clients: ${name}`, bound_ms, figures(bare), figures(ours));
    const lost = [
      ...lostOf(ours.outcome, ours.received),
      ...ours.outcome.attacked.defects,
      ...ours.outcome.honest.defects,
    ];
    bench.report({
      ...{ name: `${CLIENTS} hostile clients: lost, or wrongly answered`, bare: '', ratio: '', wanted: '0' },
      ...{
        ours: [String(lost.length), ...lost.slice(0, 3)].join('; '),
        verdict: lost.length > 0 ? 'broken' : 'ok',
      },
    });
    memory(bench, 'memory at most', ours.outcome.highest.resident_bytes);
    memory(bench, 'memory afterwards', residentBytes(daemon.pid));
    if (IS_SHORT) return;
    await sleepMs(REST_MS);
    memory(bench, 'memory ten minutes later', residentBytes(daemon.pid));
    const helpers = helpersOf(daemon.pid).reduce((sum, pid) => sum + residentBytes(pid), 0);
    memory(bench, 'memory of its helpers ten minutes later', helpers);
  },
};

/** What is timed, its bound in ms, and the times of one side in ms. */
const TIMES: [string, number, (side: Side) => number[]][] = [
  ['/healthz', 50, ({ outcome }) => outcome.honest.answers.health?.latencies_ms ?? []],
  ['a publish', 250, ({ outcome }) => outcome.honest.answers.publish?.latencies_ms ?? []],
  ['publish to delivery', 1_000, deliveryMs],
];

function deliveryMs({ outcome, received }: Side): number[] {
  const arrived_ms = new Map(received.map((event) => [event.event_id, event.arrived_ms]));
  return outcome.honest.published.map(
    ({ event_id, sent_ms }) => (arrived_ms.get(event_id) ?? Number.POSITIVE_INFINITY) - sent_ms,
  );
}

function report(bench: Bench, name: string, bound_ms: number, bare: number[], ours: number[]): void {
  const [bare_ms, ours_ms] = [percentile(bare, 0.99), percentile(ours, 0.99)];
  const ratio = ours_ms / bare_ms;
  const is_ok = ours_ms <= Math.max(bound_ms, BARE_SHARE * bare_ms);
  bench.report({
    ...{ name: `${name} p99`, bare: `${figure(bare_ms)} ms`, ours: `${figure(ours_ms)} ms` },
    ...{ ratio: `${figure(ratio)} ×`, wanted: `≤ ${bound_ms} ms or ${BARE_SHARE} ×` },
    ...{ verdict: is_ok ? 'ok' : 'missed', measured: { ours: ours_ms, ratio } },
  });
}

function memory(bench: Bench, name: string, bytes: number): void {
  bench.report({
    ...{ name: `${CLIENTS} hostile clients: ${name}`, bare: '', ours: `${figure(bytes / MB)} MB`, ratio: '' },
    ...{ wanted: `≤ ${RESIDENT_MAX_MB} MB`, verdict: bytes <= RESIDENT_MAX_MB * MB ? 'ok' : 'missed' },
    measured: { ours: bytes / MB, ratio: bytes / (RESIDENT_MAX_MB * MB) },
  });
}

/** The server that stores nothing under the same load: it has a publish and a health route alone. */
async function bareSide(bench: Bench, seed: number): Promise<Side> {
  const programs = await started(bench);
  const { url: webhook_url } = await programs.receiver.ask('listen', { secret: SECRET, seed, badly: 0 });
  const server = await bench.forwardingOnly(webhook_url);
  const outcome = await attacked(bench, programs, { ...server, token: 'none' }, seed, true);
  const wanted = new Set(outcome.honest.published.map(({ event_id }) => event_id));
  for (const late_ms = Date.now() + DRAINED_WITHIN_MS; ; await sleepMs(100)) {
    const received = await programs.receiver.ask('received', null);
    const arrived = received.filter(({ event_id }) => wanted.has(event_id));
    if (arrived.length === wanted.size || Date.now() > late_ms) return { outcome, received };
  }
}

async function ourSide(bench: Bench, seed: number) {
  const programs = await started(bench);
  const { url: webhook_url } = await programs.receiver.ask('listen', { secret: SECRET, seed, badly: 0 });
  const daemon = await bench.daemon({ webhook_url, options: OPTIONS });
  const token = daemon.authorization.authorization.replace('Bearer ', '');
  const outcome = await attacked(bench, programs, { pid: daemon.pid, url: daemon.url, token }, seed, false);
  const late_ms = Date.now() + DRAINED_WITHIN_MS;
  while ((await daemon.outbox()).pending > 0 && Date.now() < late_ms) await sleepMs(100);
  return { daemon, side: { outcome, received: await programs.receiver.ask('received', null) } };
}

async function started(bench: Bench): Promise<Parties> {
  const programs = await parties();
  for (const program of Object.values(programs)) bench.onEnd(() => program.stop());
  return programs;
}

function attacked(
  bench: Bench,
  programs: Parties,
  target: Target,
  seed: number,
  is_bare: boolean,
): Promise<AttackOutcome> {
  const folder = join(bench.folder(), 'work');
  mkdirSync(folder);
  return attack(programs, target, { clients: CLIENTS, duration_ms: DURATION_MS, seed, folder, is_bare });
}
