import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Benchmark } from '../support/bench.ts';
import { DOWN_URL } from '../support/daemon.ts';
import type { FileListerVerbs } from '../support/file-lister.ts';
import { median, nowMs } from '../support/numbers.ts';
import { childrenCpuMs, cpuMs } from '../support/process-figures.ts';
import { sized } from '../support/size.ts';
import { comparison, figure } from '../support/table.ts';

const ENTRIES = sized(100_000, 1_000);
const TURNS = sized(5, 1);

async function bareList(directory: string): Promise<number> {
  const began_ms = nowMs();
  const find = spawn('find', [directory, '-mindepth', '1', '-ls'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let lines = 0;
  find.stdout.on('data', (data: Buffer) => {
    for (let at = data.indexOf(10); at >= 0; at = data.indexOf(10, at + 1)) lines += 1;
  });
  await once(find, 'close');
  if (lines !== ENTRIES) throw new Error(`find listed ${lines}`);
  return nowMs() - began_ms;
}

/** All pages of one large directory. */
export const fileList: Benchmark = {
  name: 'file-list',
  async run(bench) {
    const directory = join(bench.folder(), 'many');
    mkdirSync(directory);
    for (let i = 0; i < ENTRIES; i++) writeFileSync(join(directory, `entry-${i}.txt`), '');
    const daemon = await bench.daemon({ webhook_url: DOWN_URL });
    const lister = await bench.program<FileListerVerbs>(
      new URL('../support/file-lister.ts', import.meta.url),
    );
    const url = `${daemon.url}/api/v1/files/list?path=${directory}`;
    const took: { bare: number; ours: number }[] = [];
    const cpu: typeof took = [];
    for (let turn = 0; turn <= TURNS; turn++) {
      const find_ms = childrenCpuMs();
      const bare = await bareList(directory);
      const [began_ms, cpu_ms] = [nowMs(), cpuMs(daemon.pid)];
      const { entries } = await lister.ask('list', { url, headers: daemon.authorization });
      const ours = nowMs() - began_ms;
      if (entries !== ENTRIES) throw new Error(`${entries} entries were listed`);
      if (turn === 0) continue; // the first warms up
      took.push({ bare, ours });
      cpu.push({ bare: childrenCpuMs() - find_ms, ours: cpuMs(daemon.pid) - cpu_ms });
    }
    bench.report(
      comparison({
        name: `${ENTRIES} entries listed; bare: find -ls`,
        ...{ bare: median(took.map((each) => each.bare)), ours: median(took.map((each) => each.ours)) },
        ratio: median(took.map((each) => each.ours / each.bare)),
        ...{ unit: 'ms', wanted: 2, wants: 'at most' },
      }),
    );
    const [bare, ours] = [median(cpu.map((each) => each.bare)), median(cpu.map((each) => each.ours))];
    bench.report({
      name: `${ENTRIES} entries listed, CPU time of the daemon; bare: of find`,
      ...{ bare: `${bare} ms`, ours: `${ours} ms`, ratio: `${figure(ours / bare)} ×` },
      ...{ wanted: 'told', verdict: 'ok' },
    });
  },
};
