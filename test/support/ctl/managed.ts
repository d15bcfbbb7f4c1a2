import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SCOPES } from '../../../src/contract/tokens.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { DaemonRuntime } from '../manager/daemon-runtime.ts';
import type { Client } from '../manager/manager-client.ts';
import { type RunningManager, startManager } from '../manager/running-manager.ts';
import { scratchFolder } from '../scratch.ts';

/** A running manager for `sandboxctl`. */
export interface Managed extends RunningManager {
  api: Client;
  folder: string;
  token_file: string;
  /** The environment that names the manager and its token. */
  env: NodeJS.ProcessEnv;
}

/** A real manager whose sandboxes have real daemons, for a team whose token may do everything. */
export async function startManaged(runtime: Runtime = new DaemonRuntime()): Promise<Managed> {
  const folder = scratchFolder();
  const running = await startManager(`sqlite:${join(folder, 'manager.db')}`, { runtime, folder });
  const api = await running.client('team_1', ...SCOPES);
  const token_file = join(folder, 'token');
  writeFileSync(token_file, `${api.token}\n`, { mode: 0o600 });
  const env = { SANDBOXCTL_MANAGER: running.manager.url, SANDBOXCTL_TOKEN_FILE: token_file, HOME: folder };
  return { ...running, api, folder, token_file, env };
}
