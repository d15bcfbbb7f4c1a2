import { scratchFolder } from '../scratch.ts';
import type { Client } from './manager-client.ts';
import { startManager } from './running-manager.ts';
import { ScriptedRuntime } from './scripted-runtime.ts';

export const SANDBOXES = '/api/v1/sandboxes';

/** A manager whose runtime does what the test says, and a team that may change sandboxes. */
export async function startScripted(database: string, folder = scratchFolder()) {
  const runtime = new ScriptedRuntime();
  const running = await startManager(database, { runtime, folder });
  const team = await running.client('team_1', 'sandboxes:write');
  return { ...running, runtime, team };
}

/** The status of a sandbox; `gone` where it leaves no record. */
export async function statusOf(team: Client, id: string): Promise<string> {
  const { status, data } = await team.get(`${SANDBOXES}/${id}?include_deleted=true`);
  return status === 404 ? 'gone' : data.status;
}
