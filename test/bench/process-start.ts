import type { BareSpawnVerbs } from './support/bare-spawn.ts';
import type { Benchmark } from './support/bench.ts';
import { DOWN_URL } from './support/daemon.ts';
import { median, nowMs } from './support/numbers.ts';
import { ProcessClient } from './support/process-client.ts';
import { sized } from './support/size.ts';
import { comparison, figure } from './support/table.ts';

const COMMAND = ['/bin/true'];
/** The first warms both up. */
const TURNS = sized(6, 2);
const STARTS = sized(40, 3);
const AT_ONCE = sized(200, 10);

/** From the request to the `process.started` that is committed, against a spawn that is kept nowhere. */
export const processStart: Benchmark = {
  name: 'process-start',
  async run(bench) {
    const bare = await bench.program<BareSpawnVerbs>(new URL('./support/bare-spawn.ts', import.meta.url));
    const client = new ProcessClient(await bench.daemon({ webhook_url: DOWN_URL }));
    await client.follow();
    let started = 0;
    const start = async () => {
      const began_ms = nowMs();
      const { process_id } = await client.ask('POST', '/processes', { command: COMMAND });
      started += 1;
      const told = (await client.events('process.started', started)).at(-1);
      if (!told || told.process_id !== process_id) throw new Error('the events are of other processes');
      const took_ms = told.told_ms - began_ms;
      await client.events('process.exited', started);
      return took_ms;
    };
    const took: { bare: number[]; ours: number[] } = { bare: [], ours: [] };
    for (let turn = 0; turn < TURNS; turn++) {
      const bare_ms = await bare.ask('spawn', { command: COMMAND, count: STARTS });
      const ours_ms: number[] = [];
      for (let i = 0; i < STARTS; i++) ours_ms.push(await start());
      if (turn === 0) continue;
      took.bare.push(...bare_ms);
      took.ours.push(...ours_ms);
    }
    client.close();
    bench.report(
      comparison({
        name: 'start to process.started committed; bare: spawn',
        ...{ bare: median(took.bare), ours: median(took.ours) },
        ...{ unit: 'ms p50', wanted: 3, wants: 'at most' },
      }),
    );
  },
};

/** Many at once: every one ends and is told. */
export const processStorm: Benchmark = {
  name: 'process-storm',
  async run(bench) {
    const client = new ProcessClient(await bench.daemon({ webhook_url: DOWN_URL }));
    await client.follow();
    const began_ms = nowMs();
    const started = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, i) => client.ask('POST', '/processes', { shell: `exit ${i % 8}` })),
    );
    for (const event_type of ['process.started', 'process.exited']) {
      const ids = new Set(started.map(({ process_id }) => process_id));
      const told = await client.events(event_type, AT_ONCE);
      for (const { process_id } of told) ids.delete(process_id);
      if (ids.size > 0) throw new Error(`${ids.size} processes have no ${event_type}`);
    }
    const took_ms = nowMs() - began_ms;
    client.close();
    bench.report({
      name: `${AT_ONCE} starts at once, all ended and told`,
      bare: '',
      ours: `${figure(took_ms)} ms`,
      ratio: '',
      wanted: 'all',
      verdict: 'ok',
    });
  },
};
