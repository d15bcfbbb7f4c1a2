import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { TokenStore } from '../../../src/manager/database/token-store.ts';
import { Client } from '../../support/manager/manager-client.ts';
import { ManagerProgram } from '../../support/manager-program.ts';
import type { Bench } from './bench.ts';

/** A sandbox of a built manager, and both ways to its daemon. */
export interface ManagedSandbox {
  manager_url: string;
  token: string;
  sandbox_id: string;
  /** The control socket of its daemon. */
  socket_path: string;
}

/** Starts a manager with one isolated sandbox; both end with the benchmark. */
export async function managedSandbox(bench: Bench, config: object = {}): Promise<ManagedSandbox> {
  const folder = bench.folder();
  const database = `sqlite:${join(folder, 'manager.db')}`;
  const data_dir = join(folder, 'data');
  const manager = await ManagerProgram.start([
    ...['--listen', '127.0.0.1:0', '--database', database, '--runtime', 'local', '--data-dir', data_dir],
    ...['--secret-key-file', join(folder, 'key'), '--allow-webhook-cidr', '127.0.0.0/8'],
  ]);
  bench.onEnd(() => manager.end('SIGTERM'));
  const opened = await openDatabase(database);
  const clock = await DatabaseClock.open(opened, systemClock);
  const token = await new TokenStore(opened.db, clock).create('team_bench', ['sandboxes:write'], false);
  await opened.close();
  const owner = new Client(() => manager.url, token);
  const sandbox_id = await owner.claim(config);
  bench.onEnd(() => owner.call('DELETE', `/api/v1/sandboxes/${sandbox_id}`));
  const places = ['control.sock', 'disk/control.sock'].map((name) => join(data_dir, sandbox_id, name));
  const socket_path = places.find((place) => existsSync(place));
  if (socket_path === undefined) throw new Error('the daemon has no socket');
  return { manager_url: manager.url, token, sandbox_id, socket_path };
}
