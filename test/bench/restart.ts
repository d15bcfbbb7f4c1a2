import { join } from 'node:path';
import type { Benchmark } from './support/bench.ts';
import { DOWN_URL } from './support/daemon.ts';
import { median, nowMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { figure } from './support/table.ts';

const PENDING = sized(100_000, 1_000);
const TURNS = sized(7, 1);
const FACTOR = 2;
const MORE_MS = 200;

/** How long a start takes until it is ready, with a backlog and without. */
export const restart: Benchmark = {
  name: 'restart',
  async run(bench) {
    const load = await bench.load();
    const empty = join(bench.folder(), 'state');
    const full = join(bench.folder(), 'state');
    const start = async (state_dir: string) => {
      const began_ms = nowMs();
      const daemon = await bench.daemon({ webhook_url: DOWN_URL, state_dir });
      return { daemon, took_ms: nowMs() - began_ms };
    };
    const { daemon } = await start(full);
    await load.ask('publish', { url: daemon.url, connections: 64, publishes: PENDING });
    await daemon.stop();
    const took: Record<'empty' | 'full', number[]> = { empty: [], full: [] };
    for (let turn = 0; turn < TURNS; turn++) {
      for (const [name, state_dir] of Object.entries({ empty, full })) {
        const started = await start(state_dir);
        took[name as 'empty' | 'full'].push(started.took_ms);
        if (name === 'full' && (await started.daemon.outbox()).pending < PENDING) {
          throw new Error('the backlog is not there');
        }
        await started.daemon.stop();
      }
    }
    const [bare, ours] = [median(took.empty), median(took.full)];
    bench.report({
      name: `start to ready with ${PENDING} pending; bare: with none`,
      bare: `${figure(bare)} ms`,
      ours: `${figure(ours)} ms`,
      ratio: `${figure(ours / bare)} ×`,
      wanted: `≤ ${FACTOR} × + ${MORE_MS} ms`,
      verdict: ours <= FACTOR * bare + MORE_MS ? 'ok' : 'missed',
    });
  },
};
