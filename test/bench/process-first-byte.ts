import type { BareSpawnVerbs } from './support/bare-spawn.ts';
import type { Benchmark } from './support/bench.ts';
import { DOWN_URL } from './support/daemon.ts';
import { median, nowMs } from './support/numbers.ts';
import { ProcessClient } from './support/process-client.ts';
import { sized } from './support/size.ts';
import { comparison } from './support/table.ts';

const COMMAND = ['/bin/echo', 'out'];
const TURNS = sized(6, 2);
const STARTS = sized(40, 3);
const AT_ONCE = 8;

interface Turn {
  first_ms: number[];
  per_second: number;
}

/** From the request to the output, in one call; then several at once. Against a spawn whose output is read from a pipe. */
export const processFirstByte: Benchmark = {
  name: 'process-first-byte',
  async run(bench) {
    const bare = await bench.program<BareSpawnVerbs>(new URL('./support/bare-spawn.ts', import.meta.url));
    const client = new ProcessClient(await bench.daemon({ webhook_url: DOWN_URL }));
    const start = async () => {
      const began_ms = nowMs();
      const { output } = await client.ask('POST', '/processes?wait_ms=60000', { command: COMMAND });
      if (output.stdout !== 'out\n') throw new Error('output is missing');
      return nowMs() - began_ms;
    };
    const ours = async (): Promise<Turn> => {
      const first_ms: number[] = [];
      for (let i = 0; i < STARTS; i++) first_ms.push(await start());
      const began_ms = nowMs();
      let started = 0;
      const several = async () => {
        while (started++ < STARTS) await start();
      };
      await Promise.all(Array.from({ length: AT_ONCE }, several));
      return { first_ms, per_second: STARTS / ((nowMs() - began_ms) / 1000) };
    };
    const turns: { bare: Turn; ours: Turn }[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      const both = {
        bare: await bare.ask('output', { command: COMMAND, count: STARTS, at_once: AT_ONCE }),
        ours: await ours(),
      };
      if (turn > 0) turns.push(both); // both warm up
    }
    client.close();
    bench.report(
      comparison({
        name: 'start to the first byte of output, in one call; bare: a pipe',
        bare: median(turns.flatMap((each) => each.bare.first_ms)),
        ours: median(turns.flatMap((each) => each.ours.first_ms)),
        ...{ unit: 'ms p50', wanted: 2, wants: 'at most' },
      }),
    );
    bench.report(
      comparison({
        name: `the same, ${AT_ONCE} at once`,
        bare: median(turns.map((each) => each.bare.per_second)),
        ours: median(turns.map((each) => each.ours.per_second)),
        ratio: median(turns.map((each) => each.ours.per_second / each.bare.per_second)),
        ...{ unit: '/s', wanted: 0.6, wants: 'at least' },
      }),
    );
  },
};
