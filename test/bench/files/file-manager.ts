import { CONTROL_SCOPE_HEADER } from '../../../src/contract/control-socket.ts';
import type { Bench, Benchmark } from '../support/bench.ts';
import { managedSandbox } from '../support/managed-sandbox.ts';
import { median } from '../support/numbers.ts';
import { sized } from '../support/size.ts';
import { comparison } from '../support/table.ts';
import { type FileServer, type FileSide, fileClient, routedFiles, serverAt, settled } from './transfers.ts';

const MIB = 1024 * 1024;
const FILE_BYTES = sized(256 * MIB, 2 * MIB);
const TURNS = sized(5, 1);
const FILE = '/root/source';

interface Ways {
  bare: FileServer;
  ours: FileServer;
}

/** A sandbox of a manager: the same daemon behind its control socket, and through the manager. */
async function waysTo(bench: Bench): Promise<Ways> {
  const { manager_url, token, sandbox_id, socket_path: path } = await managedSandbox(bench);
  return {
    bare: { to: { path }, headers: { [CONTROL_SCOPE_HEADER]: 'manage' }, prefix: '/api/v1' },
    ours: serverAt(manager_url, { authorization: `Bearer ${token}` }, `/api/v1/sandboxes/${sandbox_id}`),
  };
}

/** Transfers through the manager, against the daemon's own. */
export const fileManager: Benchmark = {
  name: 'file-manager',
  async run(bench) {
    const client = await fileClient(bench);
    const ways = await waysTo(bench);
    const sides = {
      bare: routedFiles(client, ways.bare, FILE),
      ours: routedFiles(client, ways.ours, FILE),
    };
    await sides.bare.up(FILE_BYTES, FILE);
    await compare(bench, 'down', sides, (side) => side.down());
    await compare(bench, 'up', sides, (side) => side.up(FILE_BYTES, `${FILE}-up`));
  },
};

async function compare(
  bench: Bench,
  direction: string,
  sides: { bare: FileSide; ours: FileSide },
  run: (side: FileSide) => Promise<{ took_ms: number }>,
): Promise<void> {
  const rates: { bare: number; ours: number }[] = [];
  for (let turn = 0; turn <= TURNS; turn++) {
    const rate = { bare: 0, ours: 0 };
    for (const side of ['bare', 'ours'] as const) {
      await settled();
      rate[side] = FILE_BYTES / MIB / ((await run(sides[side])).took_ms / 1000);
    }
    if (turn > 0) rates.push(rate); // the first warms up
  }
  bench.report(
    comparison({
      name: `${FILE_BYTES / MIB} MiB ${direction} through the manager; bare: the daemon's own socket`,
      ...{ bare: median(rates.map((each) => each.bare)), ours: median(rates.map((each) => each.ours)) },
      ratio: median(rates.map((each) => each.ours / each.bare)),
      ...{ unit: 'MiB/s', wanted: 0.8, wants: 'at least' },
    }),
  );
}
