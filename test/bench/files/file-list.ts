import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Benchmark } from '../support/bench.ts';
import { DOWN_URL } from '../support/daemon.ts';
import type { FileListerVerbs } from '../support/file-lister.ts';
import { median, nowMs } from '../support/numbers.ts';
import { comparison } from '../support/table.ts';

const ENTRIES = 100_000;
const TURNS = 5;

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
    for (let turn = 0; turn <= TURNS; turn++) {
      const bare = await bareList(directory);
      const began_ms = nowMs();
      const { entries } = await lister.ask('list', { url, headers: daemon.authorization });
      const ours = nowMs() - began_ms;
      if (entries !== ENTRIES) throw new Error(`${entries} entries were listed`);
      if (turn > 0) took.push({ bare, ours }); // the first warms up
    }
    bench.report(
      comparison({
        name: `${ENTRIES} entries listed; bare: find -ls`,
        ...{ bare: median(took.map((each) => each.bare)), ours: median(took.map((each) => each.ours)) },
        ratio: median(took.map((each) => each.ours / each.bare)),
        ...{ unit: 'ms', wanted: 2, wants: 'at most' },
      }),
    );
  },
};
