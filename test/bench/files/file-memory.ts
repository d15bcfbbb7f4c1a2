import type { Benchmark } from '../support/bench.ts';
import { DOWN_URL } from '../support/daemon.ts';
import { sleepMs } from '../support/numbers.ts';
import { highest, memoryBytes } from '../support/process-figures.ts';
import { sized } from '../support/size.ts';
import { figure } from '../support/table.ts';
import { bigFile } from './file-transfer.ts';
import { fileClient, routedFiles, serverAt } from './transfers.ts';

const MIB = 1024 * 1024;
const FILE_BYTES = sized(1024 * MIB, 4 * MIB);
const AT_ONCE = 8;
const MORE_MIB = 16;
const SETTLE_MS = sized(2_000, 200);

/** Eight transfers of 1 GiB at once, each direction in a daemon of its own. */
export const fileMemory: Benchmark = {
  name: 'file-memory',
  async run(bench) {
    const file = bigFile(bench.folder());
    const client = await fileClient(bench);
    for (const direction of ['down', 'up'] as const) {
      const daemon = await bench.daemon({ webhook_url: DOWN_URL });
      const side = routedFiles(client, serverAt(daemon.url, daemon.authorization), file);
      // The first request of any kind has the daemon load its API.
      await fetch(`${daemon.url}/healthz`);
      await sleepMs(SETTLE_MS);
      const idle = memoryBytes(daemon.pid);
      const all = Promise.all(Array.from({ length: AT_ONCE }, () => side[direction](FILE_BYTES)));
      const more = (await highest(all, () => memoryBytes(daemon.pid))) - idle;
      await all;
      await daemon.stop();
      bench.report({
        name: `memory of ${AT_ONCE} × 1 GiB ${direction} at once; bare: idle`,
        bare: `${figure(idle / MIB)} MiB`,
        ours: `+${figure(more / MIB)} MiB`,
        ratio: '',
        wanted: `≤ +${MORE_MIB} MB`,
        verdict: more <= MORE_MIB * 1e6 ? 'ok' : 'missed',
      });
    }
  },
};
