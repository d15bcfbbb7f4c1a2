import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RunningProgram } from '../support/running-program.ts';
import type { Benchmark } from './support/bench.ts';
import { makeTree, SANDBOXD } from './support/image.ts';
import { median, nowMs, sleepMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { figure } from './support/table.ts';

const INITS = sized(10, 1);
const WAITED_MS = 500;

/** A daemon of a warm pool: from the request that makes it a sandbox to its delivered ready event. */
export const warmPool: Benchmark = {
  name: 'warm-pool',
  async run(bench) {
    makeTree();
    const { consumer, url } = await bench.consumer({ port: 0 });
    const times: number[] = [];
    for (let i = 1; i <= INITS; i++) {
      const state_dir = join(bench.folder(), 'state');
      const daemon = new RunningProgram([SANDBOXD, '--await-init', '--state-dir', state_dir, '--port', '0'], {
        stdout: 'ignore',
      });
      const { url: api = '' } = await daemon.logged('listening');
      // It has waited in the pool for a while.
      await sleepMs(WAITED_MS);
      const token = readFileSync(join(state_dir, 'control-token'), 'utf8').trim();
      const started_ms = nowMs();
      const answer = await fetch(`${api}/api/v1/sandbox/init`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ sandbox_id: `sbx_${i}`, team_id: 'team_bench', webhook: { url } }),
      });
      if (!answer.ok) throw new Error(await answer.text());
      let count = await consumer.ask('count', null);
      while (count.requests === 0) {
        await sleepMs(5);
        count = await consumer.ask('count', null);
      }
      times.push(count.first_ms - started_ms);
      await daemon.stop();
    }
    bench.report({
      name: 'from init to the delivered sandbox.ready, median',
      ...{ bare: '', ours: `${figure(median(times))} ms`, ratio: '', wanted: 'told', verdict: 'ok' },
    });
  },
};
