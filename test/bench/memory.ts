import type { Benchmark } from './support/bench.ts';
import { DOWN_URL } from './support/daemon.ts';
import { sleepMs } from './support/numbers.ts';
import { memoryBytes } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { figure } from './support/table.ts';

const PENDING = sized(100_000, 1_000);
const MIB = 1024 * 1024;
const MORE_MIB = 60;
const SETTLE_MS = sized(3_000, 200);

/** The backlog stays on disk. */
export const memory: Benchmark = {
  name: 'memory',
  async run(bench) {
    const load = await bench.load();
    const daemon = await bench.daemon({ webhook_url: DOWN_URL });
    await sleepMs(SETTLE_MS);
    const idle = memoryBytes(daemon.pid);
    await load.ask('publish', { url: daemon.url, connections: 64, publishes: PENDING });
    const busy = memoryBytes(daemon.pid);
    await sleepMs(SETTLE_MS);
    const settled = memoryBytes(daemon.pid);
    const { pending } = await daemon.outbox();
    if (pending < PENDING) throw new Error(`${pending} of ${PENDING} are pending`);
    const row = (when: string, bytes: number) =>
      bench.report({
        name: `memory with ${PENDING} pending, ${when}; bare: idle`,
        bare: `${figure(idle / MIB)} MiB`,
        ours: `+${figure((bytes - idle) / MIB)} MiB`,
        ratio: '',
        wanted: `≤ +${MORE_MIB} MB`,
        verdict: bytes - idle <= MORE_MIB * 1e6 ? 'ok' : 'missed',
      });
    row('at once', busy);
    row('settled', settled);
  },
};
