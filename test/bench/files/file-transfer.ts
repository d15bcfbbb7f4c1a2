import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench, Benchmark } from '../support/bench.ts';
import { DOWN_URL } from '../support/daemon.ts';
import { median } from '../support/numbers.ts';
import { sized } from '../support/size.ts';
import { comparison } from '../support/table.ts';
import { bareFiles, type FileSide, fileClient, routedFiles, serverAt, settled } from './transfers.ts';

const MIB = 1024 * 1024;
const FILE_BYTES = sized(1024 * MIB, 4 * MIB);
const TURNS = sized(5, 1);

/** Writes a file of so many bytes that are not zero; returns its path. */
export function bigFile(folder: string, bytes = FILE_BYTES): string {
  const path = join(folder, 'source');
  const piece = Buffer.alloc(64 * MIB, 'abcdefg');
  writeFileSync(path, '');
  for (let left = bytes; left > 0; left -= piece.length) {
    writeFileSync(path, piece.subarray(0, Math.min(left, piece.length)), { flag: 'a' });
  }
  return path;
}

async function compare(bench: Bench, name: string, run: (side: FileSide) => Promise<number>): Promise<void> {
  const file = bigFile(bench.folder());
  const client = await fileClient(bench);
  const daemon = await bench.daemon({ webhook_url: DOWN_URL });
  const sides = {
    bare: await bareFiles(bench, client, file),
    ours: routedFiles(client, serverAt(daemon.url, daemon.authorization), file),
  };
  const rates: { bare: number; ours: number }[] = [];
  for (let turn = 0; turn <= TURNS; turn++) {
    const rate = { bare: 0, ours: 0 };
    for (const side of ['bare', 'ours'] as const) {
      await settled();
      rate[side] = FILE_BYTES / MIB / ((await run(sides[side])) / 1000);
    }
    if (turn > 0) rates.push(rate); // the first warms up
  }
  bench.report(
    comparison({
      name,
      ...{ bare: median(rates.map((each) => each.bare)), ours: median(rates.map((each) => each.ours)) },
      ratio: median(rates.map((each) => each.ours / each.bare)),
      ...{ unit: 'MiB/s', wanted: 0.7, wants: 'at least' },
    }),
  );
}

export const fileDownload: Benchmark = {
  name: 'file-download',
  run: (bench) =>
    compare(bench, '1 GiB downloaded; bare: a pipeline', async (side) => {
      const { bytes, took_ms } = await side.down();
      if (bytes < FILE_BYTES) throw new Error(`${bytes} bytes arrived`);
      return took_ms;
    }),
};

export const fileUpload: Benchmark = {
  name: 'file-upload',
  run: (bench) =>
    compare(bench, '1 GiB uploaded and synced; bare: a pipeline', async (side) => {
      return (await side.up(FILE_BYTES)).took_ms;
    }),
};
