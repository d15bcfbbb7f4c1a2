import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { CONTROL_SCOPE_HEADER } from '../../../src/contract/control-scopes.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { TokenStore } from '../../../src/manager/database/token-store.ts';
import { Client } from '../../support/manager/manager-client.ts';
import { ManagerProgram } from '../../support/manager-program.ts';
import type { Bench, Benchmark } from '../support/bench.ts';
import { median } from '../support/numbers.ts';
import { comparison } from '../support/table.ts';
import { type FileServer, type FileSide, fileClient, routedFiles, serverAt, settled } from './transfers.ts';

const MIB = 1024 * 1024;
const FILE_BYTES = 256 * MIB;
const TURNS = 5;
const FILE = '/root/source';

interface Ways {
  bare: FileServer;
  ours: FileServer;
}

/** A sandbox of a manager; the same daemon behind its control socket, and through the manager. */
async function managedSandbox(bench: Bench): Promise<Ways> {
  const folder = bench.folder();
  const database = `sqlite:${join(folder, 'manager.db')}`;
  const data_dir = join(folder, 'data');
  const manager = await ManagerProgram.start([
    ...['--listen', '127.0.0.1:0', '--database', database, '--runtime', 'local', '--data-dir', data_dir],
    ...['--secret-key-file', join(folder, 'key'), '--allow-webhook-cidr', '127.0.0.0/8'],
  ]);
  bench.onEnd(() => manager.end('SIGTERM'));
  const { db, close } = await openDatabase(database);
  const token = await new TokenStore(db, systemClock).create('team_bench', ['sandboxes:write'], false);
  await close();
  const owner = new Client(() => manager.url, token);
  const sandbox_id = await owner.claim();
  bench.onEnd(() => owner.call('DELETE', `/api/v1/sandboxes/${sandbox_id}`));
  const places = ['control.sock', 'disk/control.sock'].map((name) => join(data_dir, sandbox_id, name));
  const path = places.find((place) => existsSync(place));
  if (path === undefined) throw new Error('the daemon has no socket');
  return {
    bare: { to: { path }, headers: { [CONTROL_SCOPE_HEADER]: 'manage' }, prefix: '/api/v1' },
    ours: serverAt(manager.url, { authorization: `Bearer ${token}` }, `/api/v1/sandboxes/${sandbox_id}`),
  };
}

/** Transfers through the manager, against the daemon's own. */
export const fileManager: Benchmark = {
  name: 'file-manager',
  async run(bench) {
    const client = await fileClient(bench);
    const ways = await managedSandbox(bench);
    const sides = {
      bare: routedFiles(client, ways.bare, FILE),
      ours: routedFiles(client, ways.ours, FILE),
    };
    await sides.bare.up(FILE_BYTES, FILE);
    await compare(bench, 'down', sides, (side) => side.down());
    await compare(bench, 'up', sides, (side) => side.up(FILE_BYTES));
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
