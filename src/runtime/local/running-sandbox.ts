import { DAEMON_ANSWER_TIMEOUT_MS, DAEMON_CHANGE_TIMEOUT_MS, requestDaemon } from '../control-client.ts';
import { daemonError, environmentBody, isSuccess, stateIn } from '../daemon-answers.ts';
import type { RuntimeChange, RuntimeState } from '../runtime.ts';
import { isProcessAlive } from './host-process.ts';
import type { SandboxFiles, SandboxRecord } from './sandbox-files.ts';

/** Whether a sandbox has no living daemon: it was never completed, it has ended, or its daemon has died. */
export async function isLost(record: SandboxRecord | null): Promise<boolean> {
  if (!record?.daemon || record.state === 'creating' || record.state === 'ended') return true;
  return !(await isProcessAlive(record.daemon));
}

/** Updates fields of a sandbox's record; does nothing if there is no record. */
export function updateRecord(files: SandboxFiles, change: Partial<SandboxRecord>): void {
  const record = files.readRecord();
  if (record) files.writeRecord({ ...record, ...change });
}

/**
 * Sends a request that changes the sandbox to its daemon; `path` is below `/api/v1`. Throws what the daemon refuses
 * as an `ApiError`, and `internal_error` if a living daemon does not answer.
 */
export async function changeThroughDaemon(
  files: SandboxFiles,
  method: string,
  path: string,
  body: object,
): Promise<RuntimeChange> {
  if (await isLost(files.readRecord())) return 'lost';
  files.trimLog();
  const request = { method, path, body, within_ms: DAEMON_CHANGE_TIMEOUT_MS };
  const answer = await requestDaemon(files.socket_address, request);
  if (isSuccess(answer)) return 'done';
  if (await isLost(files.readRecord())) return 'lost';
  throw daemonError(answer);
}

/** Replaces the environment of the sandbox's later processes by `env`. Errors as in `changeThroughDaemon`. */
export async function replaceEnvironment(
  files: SandboxFiles,
  env: Record<string, string>,
): Promise<RuntimeChange> {
  const request = {
    method: 'PUT',
    path: '/sandbox/env',
    body: { env: {} },
    within_ms: DAEMON_ANSWER_TIMEOUT_MS,
  };
  const answer = await requestDaemon(files.socket_address, request);
  return changeThroughDaemon(files, 'PUT', '/sandbox/env', environmentBody(answer, env));
}

/** Asks the sandbox's daemon for its state. If a living daemon does not answer, the record decides. */
export async function inspectSandbox(files: SandboxFiles): Promise<RuntimeState> {
  const record = files.readRecord();
  if (!record || record.state === 'creating') return 'absent';
  if (await isLost(record)) return 'lost';
  const request = { method: 'GET', path: '/sandbox', within_ms: DAEMON_ANSWER_TIMEOUT_MS };
  const state = stateIn(await requestDaemon(files.socket_address, request));
  if (state !== null) return state;
  if (await isLost(record)) return 'lost';
  // The daemon is alive, but too busy to answer or stopped itself.
  return record.is_paused ? 'paused' : 'running';
}
