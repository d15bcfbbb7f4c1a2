import { join } from 'node:path';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { Given } from '../../../src/base/options.ts';
import type { Scope } from '../../../src/contract/tokens.ts';
import { managerConfig } from '../../../src/manager/config/config.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { TokenStore } from '../../../src/manager/database/token-store.ts';
import { Manager } from '../../../src/manager/manager.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { scratchFolder } from '../scratch.ts';
import { Client } from './manager-client.ts';

export interface RunningManager {
  manager: Manager;
  database: string;
  /** Makes a token and gives what calls with it. */
  client(team_id: string, ...scopes: Scope[]): Promise<Client>;
  /** The same behind the external gateway. */
  internalClient(team_id: string, ...scopes: Scope[]): Promise<Client>;
  stop(): Promise<void>;
}

/** A real manager in this process, on a port of its own; it ends with the present test. */
export async function startManager(
  database: string,
  {
    options = {},
    file = {},
    runtime = new NoRuntime(),
    clock = systemClock,
    folder = scratchFolder(),
    replicas = 1,
  }: {
    options?: Given;
    file?: Given;
    runtime?: Runtime;
    clock?: Clock;
    folder?: string;
    /** Above 1: others may share the database; Redis, which programs need then, is not asked for. */
    replicas?: number;
  } = {},
): Promise<RunningManager> {
  const config = managerConfig(
    {
      listen: '127.0.0.1:0',
      database,
      runtime: 'none',
      secret_key_file: join(folder, 'key'),
      data_dir: join(folder, 'data'),
      allow_webhook_cidr: ['127.0.0.0/8'],
      ...options,
    },
    {},
    file,
  );
  const manager = new Manager({
    config: { ...config, replicas },
    log: pino({ level: 'silent' }),
    clock,
    runtime,
  });
  await manager.start();
  const stop = () => manager.stop();
  const clientOf = async (team_id: string, scopes: Scope[], is_internal: boolean) => {
    const opened = await openDatabase(database);
    const token = await new TokenStore(opened.db, await DatabaseClock.open(opened, systemClock)).create(
      team_id,
      scopes,
      is_internal,
    );
    await opened.close();
    return new Client(() => manager.url, token);
  };
  onTestFinished(stop);
  return {
    manager,
    database,
    stop,
    client: (team_id, ...scopes) => clientOf(team_id, scopes, false),
    internalClient: (team_id, ...scopes) => clientOf(team_id, scopes, true),
  };
}
