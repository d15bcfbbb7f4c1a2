import { type DaemonResponse, requestDaemon } from '../control-client.ts';
import { daemonError, environmentBody, isSuccess } from '../daemon-answers.ts';
import { CHANGE_TIMEOUT_MS, DAEMON_ANSWER_TIMEOUT_MS } from '../running-sandbox.ts';
import type { RuntimeChange } from '../runtime.ts';
import type { ClusterClient } from './api/cluster-client.ts';
import type { Keepers } from './keepers.ts';
import { isPodLost } from './loss.ts';
import type { Pods } from './pods.ts';
import type { Records } from './records.ts';
import { resizePod } from './resize.ts';

/** What a `KubernetesChanger` works with. */
export interface KubernetesChangerParts {
  client: ClusterClient;
  pods: Pods;
  records: Records;
  keepers: Keepers;
}

/** Asks the daemons of sandboxes in the cluster, and changes what runs. */
export class KubernetesChanger {
  readonly #parts: KubernetesChangerParts;

  constructor(parts: KubernetesChangerParts) {
    this.#parts = parts;
  }

  /** Stops or continues a sandbox's processes; resolves once the event of that is committed. */
  async setPaused(sandbox_id: string, is_paused: boolean, reason: string | null): Promise<RuntimeChange> {
    const { records } = this.#parts;
    const path = is_paused ? '/sandbox/pause' : '/sandbox/resume';
    const changed = await this.#changeThroughDaemon(sandbox_id, 'POST', path, { reason });
    const found = changed === 'done' ? await records.read(sandbox_id) : null;
    if (found !== null) await records.change(found, { is_paused });
    return changed;
  }

  /** Changes memory (in place) and environment (of later processes). Throws `capacity_exhausted`, and what the daemon refuses. */
  async change(
    sandbox_id: string,
    { env, memory_mib }: { env?: Record<string, string>; memory_mib?: number },
  ): Promise<RuntimeChange> {
    const { client, pods, records } = this.#parts;
    const found = await records.read(sandbox_id);
    if (!found || (await this.isLost(sandbox_id))) return 'lost';
    if (memory_mib !== undefined && memory_mib !== found.record.memory_mib) {
      const { claim, record } = found;
      await resizePod(client, pods, { claim, record: { ...record, memory_mib } });
      await records.change(found, { memory_mib });
    }
    if (env === undefined) return 'done';
    const answer = await this.ask(sandbox_id, 'PUT', '/sandbox/env', { env: {} });
    return this.#changeThroughDaemon(sandbox_id, 'PUT', '/sandbox/env', environmentBody(answer, env));
  }

  /** What a sandbox's daemon answers. Never rejects. */
  ask(sandbox_id: string, method: string, path: string, body?: object): Promise<DaemonResponse> {
    const within_ms = method === 'POST' ? CHANGE_TIMEOUT_MS : DAEMON_ANSWER_TIMEOUT_MS;
    const request = { method, path, within_ms, ...(body === undefined ? {} : { body }) };
    return requestDaemon(() => this.#parts.keepers.connect(sandbox_id), request);
  }

  async #changeThroughDaemon(
    sandbox_id: string,
    method: string,
    path: string,
    body: object,
  ): Promise<RuntimeChange> {
    const answer = await this.ask(sandbox_id, method, path, body);
    if (isSuccess(answer)) return 'done';
    if (await this.isLost(sandbox_id)) return 'lost';
    throw daemonError(answer);
  }

  /** Whether a sandbox's Pod is gone, or has lost it; see `isPodLost`. */
  async isLost(sandbox_id: string): Promise<boolean> {
    const { pods, records, keepers } = this.#parts;
    const pod = await pods.read(await records.nameOf(sandbox_id));
    return pod === null || isPodLost(pod, keepers, sandbox_id);
  }
}
