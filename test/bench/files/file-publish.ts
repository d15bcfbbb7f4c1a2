import type { Benchmark } from '../support/bench.ts';
import { DOWN_URL } from '../support/daemon.ts';
import { median } from '../support/numbers.ts';
import { sized } from '../support/size.ts';
import { comparison } from '../support/table.ts';
import { bigFile } from './file-transfer.ts';
import { bareFiles, type FileSide, fileClient, routedFiles, serverAt, settled } from './transfers.ts';

const MIB = 1024 * 1024;
const FILE_BYTES = sized(256 * MIB, 4 * MIB);
const INTERVAL_MS = 4;
const PUBLISHES = sized(1_000, 20);
const AT_ONCE = 4;
const TURNS = sized(3, 1);

/** Publishes at a steady rate: alone, beside transfers of the daemon's, and beside those of another process. */
export const filePublish: Benchmark = {
  name: 'file-publish',
  async run(bench) {
    const file = bigFile(bench.folder(), FILE_BYTES);
    const client = await fileClient(bench);
    const load = await bench.load();
    const daemon = await bench.daemon({ webhook_url: DOWN_URL });
    const publish = () =>
      load.ask('publish', {
        ...{ url: daemon.url, connections: 8, interval_ms: INTERVAL_MS, publishes: PUBLISHES },
      });
    const sides = {
      ours: routedFiles(client, serverAt(daemon.url, daemon.authorization), file),
      bare: await bareFiles(bench, client, file),
    };
    await publish();
    for (const direction of ['down', 'up'] as const) {
      const all: Record<'quiet' | keyof typeof sides, { p50_ms: number; p99_ms: number }[]> = {
        ...{ quiet: [], ours: [], bare: [] },
      };
      for (let turn = 0; turn < TURNS; turn++) {
        await settled();
        all.quiet.push(await publish());
        for (const side of ['ours', 'bare'] as const) {
          await settled();
          all[side].push(await beside(sides[side], direction, publish));
        }
      }
      for (const share of ['p50_ms', 'p99_ms'] as const) {
        const of = (side: keyof typeof all) => median(all[side].map((each) => each[share]));
        for (const side of ['ours', 'bare'] as const) {
          const whose = side === 'ours' ? 'the daemon' : 'another process';
          bench.report(
            comparison({
              name: `publish beside ${AT_ONCE} × ${direction} of ${whose}; bare: quiet`,
              ...{ bare: of('quiet'), ours: of(side) },
              ...{ unit: `ms ${share.slice(0, 3)}`, wanted: 2, wants: 'at most' },
            }),
          );
        }
      }
    }
  },
};

/** What `work` gives while transfers run, one after the other in each of several places. */
async function beside<Result>(
  side: FileSide,
  direction: 'down' | 'up',
  work: () => Promise<Result>,
): Promise<Result> {
  let is_over = false;
  const places = Array.from({ length: AT_ONCE }, async () => {
    while (!is_over) await side[direction](FILE_BYTES);
  });
  const result = await work();
  is_over = true;
  await Promise.all(places);
  return result;
}
