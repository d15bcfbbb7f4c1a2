import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Daemon, SECRET } from '../faults/support/daemon.ts';
import { HostileReceiver } from '../faults/support/hostile-receiver.ts';
import { hang, keepAliveRace, reset, type Step, status } from '../faults/support/steps.ts';

/**
 * Minutes of load with a receiver that misbehaves and a daemon that is killed, both at random. It reports what was
 * lost, what came twice, how long events took, and how memory and descriptors went. Exit code 1 where anything that was
 * acknowledged is lost, or a body or signature is wrong.
 *
 *   node test/bench/soak.ts --minutes 10 --rate 200 [--kill-every-s 90] [--seed 1]
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '200' },
    'kill-every-s': { type: 'string', default: '150' },
    seed: { type: 'string', default: '1' },
  },
});
const minutes = Number(values.minutes);
const rate = Number(values.rate);
const kill_every_ms = Number(values['kill-every-s']) * 1_000;

const TICK_MS = 20;
const DRAIN_MS = 120_000;
const SETTLED_MS = 60_000;
const MIB = 1024 * 1024;

/** How the receiver behaves for a while, and how often that is chosen. */
const MOODS: { weight: number; script: Step[] }[] = [
  { weight: 10, script: [status(200)] },
  { weight: 2, script: [status(200, { delay_ms: 50 })] },
  { weight: 2, script: [...Array<Step>(9).fill(status(200)), status(503)] },
  { weight: 1, script: [status(429, { headers: { 'retry-after': '1' } })] },
  { weight: 1, script: [status(500)] },
  { weight: 1, script: [hang] },
  { weight: 1, script: [reset] },
  { weight: 1, script: [keepAliveRace('reset', 1)] },
];
const BY_WEIGHT = MOODS.flatMap((mood) => Array<(typeof MOODS)[number]>(mood.weight).fill(mood));

/** A generator of its own, so that a run can be repeated. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Life {
  began_ms: number;
  last_ms: number;
  settled_bytes: number;
  last_bytes: number;
  first_fds: number;
  last_fds: number;
}

const random = randomFrom(Number(values.seed));
const folder = mkdtempSync(join(tmpdir(), 'sandboxd-soak-'));
const undo: (() => unknown)[] = [];
const scene = {
  path: (name: string) => join(folder, name),
  undo: (step: () => unknown) => void undo.push(step),
};
const receiver = await HostileReceiver.start(scene, { secret: SECRET });
/** When each acknowledged event's publish began, by event id. */
const began_ms = new Map<string, number>();
const lives: Life[] = [];
let refused = 0;
let kills = 0;
let port = '0';
let daemon = await start();
port = String(daemon.port);
const end_ms = performance.now() + minutes * 60_000;

await Promise.all([publishing(), moods(), killing(), sampling()]);
receiver.behave(status(200));
await receiver.up().catch(() => {});
const is_drained = await drained();
const is_whole = report(is_drained);
for (const step of undo.reverse()) await step();
rmSync(folder, { recursive: true, force: true });
process.exit(is_whole ? 0 : 1);

async function start(): Promise<Daemon> {
  const started = await Daemon.start(scene, {
    webhook_url: receiver.url,
    options: ['--port', port, '--attempt-timeout-ms', '3000'],
  });
  const fds = started.openFiles();
  const bytes = started.residentBytes();
  const now_ms = performance.now();
  lives.push({
    began_ms: now_ms,
    last_ms: now_ms,
    settled_bytes: bytes,
    last_bytes: bytes,
    first_fds: fds,
    last_fds: fds,
  });
  return started;
}

async function publishing(): Promise<void> {
  let owed = 0;
  let last_ms = performance.now();
  while (performance.now() < end_ms) {
    const now_ms = performance.now();
    owed = Math.min(owed + ((now_ms - last_ms) * rate) / 1_000, rate);
    last_ms = now_ms;
    for (; owed >= 1; owed--) void publish();
    await sleep(TICK_MS);
  }
}

async function publish(): Promise<void> {
  const started_ms = performance.now();
  const answer = await daemon.publish({ n: String(started_ms), filler: 'x'.repeat(200) }).catch(() => null);
  const receipt = answer?.json?.data as { event_id: string } | undefined;
  if (answer?.status === 202 && receipt) began_ms.set(receipt.event_id, started_ms);
  else refused += 1;
}

async function moods(): Promise<void> {
  while (performance.now() < end_ms) {
    const { script } = BY_WEIGHT[Math.floor(random() * BY_WEIGHT.length)] as (typeof MOODS)[number];
    receiver.behaveInTurn(...script);
    await sleep(500 + random() * 4_000);
    if (random() < 0.1) {
      await receiver.down();
      await sleep(random() * 4_000);
      await receiver.up();
    }
  }
}

async function killing(): Promise<void> {
  while (kill_every_ms > 0) {
    const due_ms = performance.now() + kill_every_ms * (0.5 + random());
    if (due_ms > end_ms) return;
    await sleep(due_ms - performance.now());
    kills += 1;
    await daemon.stop('SIGKILL');
    daemon = await start();
  }
}

async function sampling(): Promise<void> {
  while (performance.now() < end_ms) {
    await sleep(1_000);
    const life = lives.at(-1);
    if (!life || daemon.exit) continue;
    life.last_ms = performance.now();
    life.last_bytes = daemon.residentBytes();
    life.last_fds = daemon.openFiles();
    if (performance.now() - life.began_ms < SETTLED_MS)
      life.settled_bytes = Math.max(life.settled_bytes, life.last_bytes);
  }
}

async function drained(): Promise<boolean> {
  const give_up_ms = performance.now() + DRAIN_MS;
  while (performance.now() < give_up_ms) {
    if ((await daemon.sandbox()).outbox.pending === 0) return true;
    await sleep(250);
  }
  return false;
}

function report(is_drained: boolean): boolean {
  const delivered_ms = new Map<string, number>();
  const bodies = new Map<string, string>();
  let repeated = 0;
  let wrong = 0;
  for (const request of receiver.requests) {
    const { event_id, at_ms, answered, is_signed } = request;
    const body = request.body.toString('latin1');
    if (!is_signed || (bodies.get(event_id) ?? body) !== body) wrong += 1;
    bodies.set(event_id, body);
    if (delivered_ms.has(event_id)) repeated += 1;
    else if (answered !== null && answered < 300) delivered_ms.set(event_id, at_ms);
  }
  const lost = [...began_ms.keys()].filter((event_id) => !delivered_ms.has(event_id)).length;
  const took_ms = [...began_ms].flatMap(
    ([event_id, began]) => (delivered_ms.get(event_id) ?? Number.NaN) - began,
  );
  const sorted = took_ms.filter((each) => !Number.isNaN(each)).sort((a, b) => a - b);
  const percentile = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  const growth = lives
    .filter((life) => life.last_ms - life.began_ms > SETTLED_MS)
    .map(({ settled_bytes, last_bytes }) => (last_bytes - settled_bytes) / MIB);
  const [first] = lives;
  const last = lives.at(-1);
  const lines: [name: string, value: string][] = [
    ['acknowledged', `${began_ms.size}`],
    ['refused (while the daemon was down or its disk busy)', `${refused}`],
    ['kills', `${kills}`],
    ['lost', `${lost}${is_drained ? '' : ' (not drained in time)'}`],
    ['attempts after a 2xx (in flight at a kill)', `${repeated}`],
    ['wrong bodies or signatures', `${wrong}`],
    [
      'end to end p50 / p99 / p99.9 / most',
      [0.5, 0.99, 0.999, 1].map((p) => `${percentile(p).toFixed(1)} ms`).join(' / '),
    ],
    [
      'memory after the first minute, growth (MiB, each life)',
      growth.map((each) => each.toFixed(1)).join(', ') || '-',
    ],
    ['memory at the end (MiB)', ((last?.last_bytes ?? 0) / MIB).toFixed(1)],
    ['descriptors at the start / at the end', `${first?.first_fds} / ${last?.last_fds}`],
  ];
  for (const [name, value] of lines) console.log(`${name.padEnd(56)} ${value}`);
  return lost === 0 && wrong === 0 && is_drained;
}
