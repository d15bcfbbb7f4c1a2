import type { Benchmark } from './support/bench.ts';
import { sleepMs } from './support/numbers.ts';
import { cpuMs, wakeUps } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { figure } from './support/table.ts';

const SETTLE_MS = sized(10_000, 300);
const IDLE_MS = sized(20_000, 500);
const CPU_SHARE = 0.002;

/** What the daemon takes while nothing happens: a consumer that is there, a folder that is watched, no event. */
export const idle: Benchmark = {
  name: 'idle',
  async run(bench) {
    const { url: webhook_url } = await bench.consumer({ port: 0 });
    const { pid } = await bench.daemon({ webhook_url, env: { SANDBOXD_WATCH_DIR: bench.folder() } });
    await sleepMs(SETTLE_MS);
    const cpu_ms = cpuMs(pid);
    const woken = wakeUps(pid);
    await sleepMs(IDLE_MS);
    const share = (cpuMs(pid) - cpu_ms) / IDLE_MS;
    const per_second = ((wakeUps(pid) - woken) / IDLE_MS) * 1000;
    bench.report({
      name: `idle for ${IDLE_MS / 1000} s, CPU and wake-ups`,
      bare: '',
      ours: `${figure(share * 100)} %, ${figure(per_second)}/s`,
      ratio: '',
      wanted: `< ${CPU_SHARE * 100} %`,
      verdict: share < CPU_SHARE ? 'ok' : 'missed',
    });
  },
};
