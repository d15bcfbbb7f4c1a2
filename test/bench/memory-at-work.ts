import { spawn } from 'node:child_process';
import type { Bench, Benchmark } from './support/bench.ts';
import { sleepMs } from './support/numbers.ts';
import { memoryBytes } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { figure } from './support/table.ts';

const MB = 1e6;
const CONNECTIONS = 32;
const EVENTS = sized(5_000, 100);
const SLOW_EVENTS = sized(300, 20);
const SLOW_ANSWER_MS = 150;
const SETTLE_MS = sized(3_000, 200);
const IDLE_MORE_MB = 18;
const AFTER_EVENTS_MB = 105;
const SLOW_MORE_MB = 30;
const WAITING_PROGRAM = 'setInterval(() => {}, 2 ** 30)';

/** The resident memory of a daemon that delivers: at rest, after events, and with answers that take their time. */
export const memoryAtWork: Benchmark = {
  name: 'memory-at-work',
  async run(bench) {
    const bare = spawn(process.execPath, ['-e', WAITING_PROGRAM], { stdio: 'ignore' });
    bench.onEnd(() => bare.kill('SIGKILL'));
    const after = await memoryAfter(bench, EVENTS, 0);
    const slow = await memoryAfter(bench, SLOW_EVENTS, SLOW_ANSWER_MS);
    const bare_bytes = memoryBytes(bare.pid as number);
    const report = (name: string, from_bytes: number, bytes: number, wanted_mb: number) =>
      bench.report({
        name,
        bare: from_bytes === 0 ? '' : `${figure(from_bytes / MB)} MB`,
        ours: `${from_bytes === 0 ? '' : '+'}${figure((bytes - from_bytes) / MB)} MB`,
        ratio: '',
        wanted: `≤ ${from_bytes === 0 ? '' : '+'}${wanted_mb} MB`,
        verdict: bytes - from_bytes <= wanted_mb * MB ? 'ok' : 'missed',
        measured: { ours: (bytes - from_bytes) / MB, ratio: bytes / (from_bytes || bare_bytes) },
      });
    report('memory at rest; bare: node that waits', bare_bytes, after.rest_bytes, IDLE_MORE_MB);
    report(`memory after ${EVENTS} events`, 0, after.bytes, AFTER_EVENTS_MB);
    const name = `memory after ${SLOW_EVENTS} events, answered in ${SLOW_ANSWER_MS} ms; bare: at rest`;
    report(name, slow.rest_bytes, slow.bytes, SLOW_MORE_MB);
  },
};

/** Of a daemon at rest, and once that many events are delivered. */
async function memoryAfter(bench: Bench, publishes: number, delay_ms: number) {
  const { consumer, url: webhook_url } = await bench.consumer({ port: 0, delay_ms });
  const load = await bench.load();
  const daemon = await bench.daemon({ webhook_url });
  await sleepMs(SETTLE_MS);
  const rest_bytes = memoryBytes(daemon.pid);
  await consumer.ask('count', null);
  await load.ask('publish', { url: daemon.url, connections: CONNECTIONS, publishes });
  let delivered = 0;
  while (delivered < publishes) {
    await sleepMs(50);
    delivered += (await consumer.ask('count', null)).requests;
  }
  return { rest_bytes, bytes: memoryBytes(daemon.pid) };
}
