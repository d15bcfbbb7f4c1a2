import { ApiError } from '../../contract/errors.ts';
import { type DaemonResponse, requestDaemon } from '../control-client.ts';
import {
  changeIn,
  checkSwitch,
  DAEMON_ANSWER_TIMEOUT_MS,
  DAEMON_CHANGE_TIMEOUT_MS,
  daemonError,
  environmentBody,
  isSuccess,
  stateIn,
  switchBody,
} from '../daemon-requests.ts';
import { type Fence, isGone, type Liveness, type RuntimeChange, type RuntimeState } from '../runtime.ts';
import { stepsOf } from '../steps.ts';
import type { ClusterClient } from './api/cluster-client.ts';
import type { Pod } from './api/objects.ts';
import type { Keepers } from './keepers.ts';
import { isSilent, isUp } from './pod-state.ts';
import type { Pods } from './pods.ts';
import { type Records, takenBy } from './records.ts';
import { resizePod } from './resize.ts';

/** What `RunningSandboxes` works with. */
export interface RunningSandboxesParts {
  client: ClusterClient;
  pods: Pods;
  records: Records;
  keepers: Keepers;
}

/** Asks sandboxes that run in the cluster, through the keepers beside their daemons, and changes them. */
export class RunningSandboxes {
  readonly #parts: RunningSandboxesParts;

  constructor(parts: RunningSandboxesParts) {
    this.#parts = parts;
  }

  /**
   * Whether a sandbox lives. One with a record and without a Pod is lost: the cluster forgets a Pod once its node, or
   * somebody in its place, has said that it has ended. Without either nobody can tell.
   */
  async liveness(sandbox_id: string): Promise<Liveness> {
    const { pods, records, keepers } = this.#parts;
    const pod = await pods.read(await records.nameOf(sandbox_id));
    if (pod === null) return (await records.read(sandbox_id)) === null ? 'unknown' : 'lost';
    return (await isPodLost(pod, keepers, sandbox_id)) ? 'lost' : 'alive';
  }

  /**
   * The sandbox's state, as its daemon answers, which takes no cluster where the daemon's address is known. Throws
   * `unavailable` where neither can be asked.
   */
  async inspect(sandbox_id: string): Promise<RuntimeState> {
    try {
      return await this.#inspectInCluster(sandbox_id);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'unavailable') throw error;
      const state = stateIn(await this.#askDaemon(sandbox_id, 'GET', '/sandbox'));
      if (state === 'running' || state === 'paused') return state;
      throw error;
    }
  }

  async #inspectInCluster(sandbox_id: string): Promise<RuntimeState> {
    const found = await this.#parts.records.read(sandbox_id);
    if (!found || found.record.state === 'creating') return 'absent';
    if ((await this.liveness(sandbox_id)) !== 'alive') return 'lost';
    const state = stateIn(await this.#askDaemon(sandbox_id, 'GET', '/sandbox'));
    if (state !== null) return state;
    if ((await this.liveness(sandbox_id)) !== 'alive') return 'lost';
    return found.record.is_paused ? 'paused' : 'running';
  }

  /** Stops or continues a sandbox's processes; resolves once the event of that is committed. */
  async setPaused(
    sandbox_id: string,
    is_paused: boolean,
    reason: string | null,
    fence?: Fence,
    memory = true,
  ): Promise<RuntimeChange> {
    const { records } = this.#parts;
    const path = is_paused ? '/sandbox/pause' : '/sandbox/resume';
    // Read first: nothing is changed that could not be recorded.
    const found = await records.read(sandbox_id);
    const begin = stepsOf(fence, () => takenBy(found));
    await checkSwitch(() => this.#parts.keepers.connect(sandbox_id), memory);
    await begin('ask the daemon');
    const changed = await this.#changeThroughDaemon(sandbox_id, 'POST', path, switchBody(reason, memory));
    await begin('record the change');
    if (!isGone(changed) && found !== null) await records.change(found, { is_paused });
    return changed;
  }

  /** Changes memory (in place) and environment (of later processes). Throws `capacity_exhausted`, and what the daemon refuses. */
  async change(
    sandbox_id: string,
    { env, memory_mib }: { env?: Record<string, string>; memory_mib?: number },
    fence?: Fence,
  ): Promise<RuntimeChange> {
    const { client, pods, records } = this.#parts;
    const found = await records.read(sandbox_id);
    if (!found) return 'unknown';
    const life = await this.liveness(sandbox_id);
    if (life !== 'alive') return life;
    const begin = stepsOf(fence, () => takenBy(found));
    if (memory_mib !== undefined && memory_mib !== found.record.memory_mib) {
      const { claim, record } = found;
      await begin('limit the memory');
      await resizePod(client, pods, { claim, record: { ...record, memory_mib } });
      await begin('record the memory');
      await records.change(found, { memory_mib });
    }
    if (env === undefined) return 'done';
    await begin('replace the environment');
    const answer = await this.#askDaemon(sandbox_id, 'PUT', '/sandbox/env', { env: {} });
    return this.#changeThroughDaemon(sandbox_id, 'PUT', '/sandbox/env', environmentBody(answer, env));
  }

  async #changeThroughDaemon(
    sandbox_id: string,
    method: string,
    path: string,
    body: object,
  ): Promise<RuntimeChange> {
    const answer = await this.#askDaemon(sandbox_id, method, path, body);
    if (isSuccess(answer)) return changeIn(answer);
    const life = await this.liveness(sandbox_id);
    if (life !== 'alive') return life;
    throw daemonError(answer);
  }

  /** The answer of a sandbox's daemon. Never rejects. */
  #askDaemon(sandbox_id: string, method: string, path: string, body?: object): Promise<DaemonResponse> {
    const within_ms = method === 'POST' ? DAEMON_CHANGE_TIMEOUT_MS : DAEMON_ANSWER_TIMEOUT_MS;
    const request = { method, path, within_ms, ...(body === undefined ? {} : { body }) };
    return requestDaemon(() => this.#parts.keepers.connect(sandbox_id), request);
  }
}

/**
 * Whether a Pod has lost its sandbox, which takes a proof: the Pod is being removed, it or one of its containers has ended,
 * or the cluster has not heard of its node for a while and its keeper does not answer. A daemon that is slow, a node whose
 * kubelet is away, and a cluster that cannot be asked prove nothing.
 */
export async function isPodLost(pod: Pod, keepers: Keepers, sandbox_id: string): Promise<boolean> {
  if (isUp(pod)) return false;
  return !isSilent(pod) || !(await keepers.isReached(sandbox_id));
}
