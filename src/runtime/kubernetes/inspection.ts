import { ApiError } from '../../contract/errors.ts';
import { type DaemonResponse, requestDaemon } from '../control-client.ts';
import { DAEMON_ANSWER_TIMEOUT_MS, DAEMON_CHANGE_TIMEOUT_MS, stateIn } from '../daemon-requests.ts';
import type { RuntimeState } from '../runtime.ts';
import type { Keepers } from './keepers.ts';
import { isPodLost } from './loss.ts';
import type { Pods } from './pods.ts';
import type { Records } from './records.ts';

/** What tells of sandboxes. */
export interface InspectionParts {
  pods: Pods;
  records: Records;
  keepers: Keepers;
}

/** Whether a sandbox has no Pod, or that has lost it. */
export async function isSandboxLost(
  { pods, records, keepers }: InspectionParts,
  sandbox_id: string,
): Promise<boolean> {
  const pod = await pods.read(await records.nameOf(sandbox_id));
  return pod === null || isPodLost(pod, keepers, sandbox_id);
}

/** The answer of a sandbox's daemon, through the keeper beside it. Never rejects. */
export function askDaemon(
  keepers: Keepers,
  sandbox_id: string,
  method: string,
  path: string,
  body?: object,
): Promise<DaemonResponse> {
  const within_ms = method === 'POST' ? DAEMON_CHANGE_TIMEOUT_MS : DAEMON_ANSWER_TIMEOUT_MS;
  const request = { method, path, within_ms, ...(body === undefined ? {} : { body }) };
  return requestDaemon(() => keepers.connect(sandbox_id), request);
}

/**
 * The sandbox's state, as its daemon answers, which takes no cluster where the daemon's address is known. Throws
 * `unavailable` where neither can be asked.
 */
export async function inspect(parts: InspectionParts, sandbox_id: string): Promise<RuntimeState> {
  try {
    return await inCluster(parts, sandbox_id);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'unavailable') throw error;
    const state = stateIn(await askDaemon(parts.keepers, sandbox_id, 'GET', '/sandbox'));
    if (state === 'running' || state === 'paused') return state;
    throw error;
  }
}

async function inCluster(parts: InspectionParts, sandbox_id: string): Promise<RuntimeState> {
  const found = await parts.records.read(sandbox_id);
  if (!found || found.record.state === 'creating') return 'absent';
  if (await isSandboxLost(parts, sandbox_id)) return 'lost';
  const state = stateIn(await askDaemon(parts.keepers, sandbox_id, 'GET', '/sandbox'));
  if (state !== null) return state;
  if (await isSandboxLost(parts, sandbox_id)) return 'lost';
  return found.record.is_paused ? 'paused' : 'running';
}
