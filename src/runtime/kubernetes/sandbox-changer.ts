import { daemonError, environmentBody, isSuccess } from '../daemon-requests.ts';
import type { RuntimeChange } from '../runtime.ts';
import type { ClusterClient } from './api/cluster-client.ts';
import { askDaemon, type InspectionParts, isSandboxLost } from './inspection.ts';
import { resizePod } from './resize.ts';

/** What a `KubernetesChanger` works with. */
export interface KubernetesChangerParts extends InspectionParts {
  client: ClusterClient;
}

/** Changes sandboxes in the cluster that run. */
export class KubernetesChanger {
  readonly #parts: KubernetesChangerParts;

  constructor(parts: KubernetesChangerParts) {
    this.#parts = parts;
  }

  /** Stops or continues a sandbox's processes; resolves once the event of that is committed. */
  async setPaused(sandbox_id: string, is_paused: boolean, reason: string | null): Promise<RuntimeChange> {
    const { records } = this.#parts;
    const path = is_paused ? '/sandbox/pause' : '/sandbox/resume';
    // Read first: nothing is changed that could not be recorded.
    const found = await records.read(sandbox_id);
    const changed = await this.#changeThroughDaemon(sandbox_id, 'POST', path, { reason });
    if (changed === 'done' && found !== null) await records.change(found, { is_paused });
    return changed;
  }

  /** Changes memory (in place) and environment (of later processes). Throws `capacity_exhausted`, and what the daemon refuses. */
  async change(
    sandbox_id: string,
    { env, memory_mib }: { env?: Record<string, string>; memory_mib?: number },
  ): Promise<RuntimeChange> {
    const { client, pods, records } = this.#parts;
    const found = await records.read(sandbox_id);
    if (!found || (await isSandboxLost(this.#parts, sandbox_id))) return 'lost';
    if (memory_mib !== undefined && memory_mib !== found.record.memory_mib) {
      const { claim, record } = found;
      await resizePod(client, pods, { claim, record: { ...record, memory_mib } });
      await records.change(found, { memory_mib });
    }
    if (env === undefined) return 'done';
    const answer = await askDaemon(this.#parts.keepers, sandbox_id, 'PUT', '/sandbox/env', { env: {} });
    return this.#changeThroughDaemon(sandbox_id, 'PUT', '/sandbox/env', environmentBody(answer, env));
  }

  async #changeThroughDaemon(
    sandbox_id: string,
    method: string,
    path: string,
    body: object,
  ): Promise<RuntimeChange> {
    const answer = await askDaemon(this.#parts.keepers, sandbox_id, method, path, body);
    if (isSuccess(answer)) return 'done';
    if (await isSandboxLost(this.#parts, sandbox_id)) return 'lost';
    throw daemonError(answer);
  }
}
