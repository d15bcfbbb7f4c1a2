import type { Benchmark } from './support/bench.ts';
import { DOWN_URL } from './support/daemon.ts';
import { nowMs, sleepMs } from './support/numbers.ts';
import { ProcessClient } from './support/process-client.ts';
import { openFiles, zombies } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { figure } from './support/table.ts';

const PROCESSES = sized(1_000, 20);
const AT_ONCE = 20;
/** At least as many as at once, so that all connections are open. */
const WARM_UP = sized(50, AT_ONCE);
const SETTLE_MS = 2_000;
/** A slow machine is waited for this long before something counts as left behind. */
const SETTLE_MAX_MS = 20_000;

/** Many short processes: nothing of them is left behind in the daemon. */
export const processChurn: Benchmark = {
  name: 'process-churn',
  async run(bench) {
    const daemon = await bench.daemon({ webhook_url: DOWN_URL });
    const client = new ProcessClient(daemon);
    await run(client, WARM_UP);
    await sleepMs(SETTLE_MS);
    const before = openFiles(daemon.pid);
    const began_ms = nowMs();
    await run(client, PROCESSES);
    const per_second = PROCESSES / ((nowMs() - began_ms) / 1000);
    const left = await leftOver(daemon.pid, before);
    client.close();
    bench.report({
      name: `${PROCESSES} short processes, ${figure(per_second)}/s; bare: files open before`,
      bare: `${before}`,
      ours: `+${left.files} files, ${left.zombies} zombies`,
      ratio: '',
      wanted: 'none left',
      verdict: left.files <= 0 && left.zombies === 0 ? 'ok' : 'broken',
    });
  },
};

/** What is more than before once the daemon has settled. */
async function leftOver(pid: number, before: number): Promise<{ files: number; zombies: number }> {
  const end_ms = nowMs() + SETTLE_MAX_MS;
  for (;;) {
    await sleepMs(SETTLE_MS);
    const left = { files: openFiles(pid) - before, zombies: zombies(pid) };
    if ((left.files <= 0 && left.zombies === 0) || nowMs() > end_ms) return left;
  }
}

async function run(client: ProcessClient, count: number): Promise<void> {
  let left = count;
  const worker = async () => {
    while (left-- > 0) {
      const { exit_code } = await client.ask('POST', '/processes?wait_ms=60000', { shell: 'echo x' });
      if (exit_code !== 0) throw new Error(`a process ended with ${exit_code}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
