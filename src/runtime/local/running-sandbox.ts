import { statSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { requestDaemon } from '../control-client.ts';
import {
  changeIn,
  checkSwitch,
  DAEMON_ANSWER_TIMEOUT_MS,
  DAEMON_CHANGE_TIMEOUT_MS,
  daemonError,
  environmentBody,
  isSuccess,
  lifecycleOf,
  NO_EVENTS,
  stateIn,
  switchBody,
} from '../daemon-requests.ts';
import type { ResourceGroups } from '../limits/resource-groups.ts';
import {
  type Fence,
  isGone,
  type KeptSandbox,
  type LifecyclePage,
  type Liveness,
  type MadeSandbox,
  type RecordTrust,
  type RuntimeChange,
  type RuntimeState,
} from '../runtime.ts';
import { stepsOf } from '../steps.ts';
import { isProcessAlive } from './host-process.ts';
import type { LocalRecord, SandboxFiles } from './sandbox-files.ts';

const MIB = 1024 * 1024;

/** Whether a sandbox has no living daemon: it was never completed, it has ended, or its daemon has died. */
export async function isLost(record: LocalRecord | null): Promise<boolean> {
  if (!record?.daemon || record.state === 'creating' || record.state === 'ended') return true;
  return !(await isProcessAlive(record.daemon));
}

/** The same in words: where there is no record, nobody can tell. */
export async function livenessOf(record: LocalRecord | null): Promise<Liveness> {
  if (record === null) return 'unknown';
  return (await isLost(record)) ? 'lost' : 'alive';
}

/** What a sandbox's files say of it, also of one that was never complete. */
export async function keptSandboxOf(
  files: SandboxFiles,
  record: LocalRecord | null,
  made: MadeSandbox,
): Promise<KeptSandbox> {
  const image = statSync(files.disk_image, { throwIfNoEntry: false });
  const state = record?.is_paused ? 'paused' : 'running';
  const is_complete = record !== null && record.state !== 'creating';
  return {
    team_id: record?.team_id ?? '',
    state: !is_complete ? 'incomplete' : (await isLost(record)) ? 'ended' : state,
    memory_mib: record?.memory_mib ?? 0,
    cpu_millis: record?.cpu_millis ?? 0,
    held_mib: record?.held_mib ?? null,
    disk_mib: image ? Math.ceil(image.size / MIB) : null,
    watch_dir: record?.watch_dir ?? null,
    note: record?.note ?? null,
    made,
  };
}

/** Updates fields of a sandbox's record; does nothing if there is no record. */
export function updateRecord(files: SandboxFiles, change: Partial<LocalRecord>): void {
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
  const life = await livenessOf(files.readRecord());
  if (life !== 'alive') return life;
  files.trimLog();
  const request = { method, path, body, within_ms: DAEMON_CHANGE_TIMEOUT_MS };
  const answer = await requestDaemon(files.socket_address, request);
  if (isSuccess(answer)) return changeIn(answer);
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

/**
 * Pauses or resumes a sandbox through its daemon, which stops and continues the processes that it knows; the kernel
 * freezes them all besides. Without `memory` the daemon ends them. Errors as in `changeThroughDaemon`, and if the kernel does
 * not; then it is as before, but for what was ended.
 */
export async function setSandboxPaused(
  files: SandboxFiles,
  is_paused: boolean,
  reason: string | null,
  { groups, clock }: { groups: ResourceGroups; clock: Clock },
  fence?: Fence,
  memory = true,
): Promise<RuntimeChange> {
  const begin = stepsOf(fence, () => files.takenBy());
  const { sandbox_id } = files;
  const { frozen } = groups;
  const record = files.readRecord();
  const { daemon, is_paused: was_paused, memory_mib = 0 } = record ?? {};
  const change = (to: boolean, keeping = true) =>
    changeThroughDaemon(
      files,
      'POST',
      to ? '/sandbox/pause' : '/sandbox/resume',
      switchBody(reason, keeping),
    );
  const freeze = async () => {
    await begin('freeze the processes');
    if (daemon) await frozen.freeze(sandbox_id, daemon, clock);
  };
  const hold = () => groups.hold(sandbox_id, memory_mib, clock);
  await checkSwitch(files.socket_address, memory);
  if (!is_paused) {
    await begin('thaw the processes');
    if (record !== null) groups.limit(sandbox_id, record);
    frozen.thaw(sandbox_id);
  }
  await begin('ask the daemon');
  const changed = await change(is_paused, memory).catch(async (error) => {
    if (was_paused) {
      await freeze();
      updateRecord(files, { held_mib: await hold() });
    }
    throw error;
  });
  if (isGone(changed)) return changed;
  if (is_paused) {
    await freeze().catch(async (error) => {
      await begin('take the pause back');
      frozen.thaw(sandbox_id);
      await change(false);
      throw error;
    });
  }
  const held_mib = is_paused ? await hold() : null;
  await begin('record the change');
  updateRecord(files, { is_paused, held_mib });
  return changed;
}

/** See `lifecycleOf`; a daemon without a record key has no events that could be trusted. */
export async function readLifecycle(
  files: SandboxFiles,
  trust: RecordTrust,
  after: number,
): Promise<LifecyclePage | null> {
  const { sandbox_id, socket_address } = files;
  const record = files.readRecord();
  if (record === null) return null;
  if (!record.has_record_key) return NO_EVENTS;
  return lifecycleOf(socket_address, { ...trust, sandbox_id }, after);
}
