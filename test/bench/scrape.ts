import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import type { Benchmark } from './support/bench.ts';
import { DOWN_URL } from './support/daemon.ts';
import { sized } from './support/size.ts';
import { figure } from './support/table.ts';

const SCRAPES = sized(500, 5);
const WARM_UP = sized(100, 2);
const SCRAPE_MS = 1;

/** The time of the main thread, which answers publishes too, that a scrape of /metrics takes. */
export const scrape: Benchmark = {
  name: 'scrape',
  async run(bench) {
    const { pid, url } = await bench.daemon({ webhook_url: DOWN_URL });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    bench.onEnd(() => agent.destroy());
    const each_ms = async (path: string) => {
      for (let i = 0; i < WARM_UP; i++) await get(url + path, agent);
      const before_ms = mainThreadMs(pid);
      for (let i = 0; i < SCRAPES; i++) await get(url + path, agent);
      return (mainThreadMs(pid) - before_ms) / SCRAPES;
    };
    const bare_ms = await each_ms('/healthz');
    const ours_ms = await each_ms('/metrics');
    bench.report({
      name: 'main thread for a scrape of /metrics; bare: of /healthz',
      bare: `${figure(bare_ms)} ms`,
      ours: `${figure(ours_ms)} ms`,
      ratio: '',
      wanted: `< ${SCRAPE_MS} ms`,
      verdict: ours_ms < SCRAPE_MS ? 'ok' : 'missed',
      measured: { ours: ours_ms, ratio: ours_ms / bare_ms },
    });
  },
};

/** Time on a processor. */
function mainThreadMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

function get(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { agent }, (answer) => answer.resume().on('end', resolve));
    asked.on('error', reject).end();
  });
}
