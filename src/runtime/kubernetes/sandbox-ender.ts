import { type Clock, runTime, sleep } from '../../base/clock.ts';
import { kernelRandom } from '../../base/entropy.ts';
import type { Log } from '../../base/log.ts';
import { ApiError } from '../../contract/errors.ts';
import type { SandboxTemplates } from '../../contract/templates.ts';
import type { Persistence } from '../../contract/words.ts';
import { askToStop, STOP_TIMEOUT_MS } from '../daemon-requests.ts';
import type { Fence, HandOverTrust, RuntimeEnd, UndeliveredPage } from '../runtime.ts';
import { type Begin, stepsOf } from '../steps.ts';
import type { ClusterClient } from './api/cluster-client.ts';
import type { Pod } from './api/objects.ts';
import { KEY_BYTES } from './keeper/keeper-protocol.ts';
import type { KeeperClient } from './keeper-client.ts';
import type { Keepers } from './keepers.ts';
import { type PodSettings, type ReaderTemplate, readerManifest, secretManifest } from './manifests.ts';
import { objectName, readerName } from './names.ts';
import { hasEnded, hasKeeper } from './pod-state.ts';
import type { Pods } from './pods.ts';
import { type FoundRecord, type Records, takenBy } from './records.ts';
import { isPodLost } from './running-sandboxes.ts';

/** What a Pod gets to end that is no longer needed, in seconds. */
const GRACE_S = 1;
const REMOVE_TIMEOUT_MS = 60_000;
const POLL_MS = 100;

/** What the volume of an older record is read with whose template is gone: the templates' defaults, whose files these are. */
const OLDER_READER: Record<Persistence, ReaderTemplate> = {
  volume: { user: 1_000, user_namespace: true, runtime_class: null, image_pull_secret: null },
  root: { user: 0, user_namespace: true, runtime_class: null, image_pull_secret: null },
};

/** What a `KubernetesEnder` works with. */
export interface KubernetesEnderParts {
  client: ClusterClient;
  pods: Pods;
  records: Records;
  keepers: Keepers;
  templates: SandboxTemplates;
  settings: PodSettings;
  clock: Clock;
  log: Log;
}

/** Ends sandboxes in the cluster and removes them. Every step may be repeated, after an interruption or by another manager. */
export class KubernetesEnder {
  readonly #parts: KubernetesEnderParts;

  constructor(parts: KubernetesEnderParts) {
    this.#parts = parts;
  }

  /**
   * Ends the sandbox's processes and its daemon; nothing of it runs afterwards. Throws `unavailable` where that cannot be
   * known, because its node does not answer.
   */
  async end(sandbox_id: string, fence?: Fence): Promise<RuntimeEnd> {
    const { records } = this.#parts;
    const found = await records.read(sandbox_id);
    const begin = stepsOf(fence, () => takenBy(found));
    if (!found || found.record.state === 'creating') {
      await begin('kill what was not complete');
      await this.#kill(sandbox_id);
      return { outcome: 'absent' };
    }
    if (hasEndedRecord(found)) return { outcome: found.record.outcome ?? 'lost' };
    const { outcome, record } = await this.#stop(sandbox_id, found, begin);
    await begin('record the end');
    await records.change(record, { state: 'ended', outcome });
    return { outcome };
  }

  async #stop(
    sandbox_id: string,
    found: FoundRecord,
    begin: Begin,
  ): Promise<{ outcome: 'killed' | 'lost'; record: FoundRecord }> {
    const { pods, records, keepers, log } = this.#parts;
    const pod = await pods.read(found.claim.name);
    if (pod === null || (await isPodLost(pod, keepers, sandbox_id))) {
      await begin('kill what has lost its daemon');
      if (pod !== null && !hasEnded(pod)) await this.#kill(sandbox_id);
      // A daemon that is gone after `ending` was written has ended on request, of this call or an earlier one.
      return { outcome: found.record.state === 'ending' ? 'killed' : 'lost', record: found };
    }
    await begin('record that it ends');
    const record = await records.change(found, { state: 'ending' });
    await begin('ask the daemon to stop');
    const is_accepted = await askToStop(() => keepers.connect(sandbox_id));
    if (is_accepted && (await pods.wait(pod, STOP_TIMEOUT_MS, hasEnded)))
      return { outcome: 'killed', record };
    log.warn({ sandbox_id }, 'killing a daemon that did not stop in time');
    await begin('kill what still runs');
    await this.#kill(sandbox_id);
    return { outcome: 'lost', record };
  }

  /** Ends the sandbox's Pod; the volume is left. Throws `unavailable` if its node does not say that it has ended. */
  async #kill(sandbox_id: string): Promise<void> {
    await this.#end(await this.#parts.records.nameOf(sandbox_id));
  }

  async #end(pod_name: string): Promise<void> {
    if (await this.#parts.pods.remove(pod_name, GRACE_S, REMOVE_TIMEOUT_MS)) return;
    throw new ApiError('unavailable', "The sandbox's node does not say that it has ended.", {
      retry_after_s: 1,
    });
  }

  /** Reads what an ended sandbox's daemon had not delivered. Throws `conflict` if the sandbox has not ended. */
  async *handOver(sandbox_id: string, trust: HandOverTrust, fence?: Fence): AsyncGenerator<UndeliveredPage> {
    const found = await this.#parts.records.read(sandbox_id);
    if (!found || found.record.state === 'creating') return;
    if (!hasEndedRecord(found)) throw new ApiError('conflict', 'The sandbox has not ended.');
    // Its removal has begun, and so its hand-over was complete. What would read it again may be gone.
    if (found.record.state === 'removing') return;
    const begin = stepsOf(fence, () => takenBy(found));
    const keeper = await this.#keeper(sandbox_id, found, begin);
    await keeper.untilReached();
    await begin('read the outbox');
    yield* keeper.handOver({ ...trust, sandbox_id });
  }

  /** The keeper that reads the volume: that of the sandbox's Pod, or of a Pod made for it once that has ended. */
  async #keeper(sandbox_id: string, found: FoundRecord, begin: Begin): Promise<KeeperClient> {
    const { client, pods, keepers, templates, settings } = this.#parts;
    const { claim } = found;
    const [pod, key] = await Promise.all([
      pods.read(claim.name),
      client.metadata(client.path('secrets', claim.name)),
    ]);
    if (pod !== null && hasEnded(pod) && hasKeeper(pod) && key !== null) return keepers.of(sandbox_id);
    await begin('kill the Pod');
    if (pod !== null) await this.#kill(sandbox_id);
    // The template may have been changed or removed since: what it was for this sandbox stands in its record.
    const { record } = found;
    const template = record.reader ?? templates.get(record.template) ?? OLDER_READER[record.persists];
    // The key may be another than that of the sandbox's own keeper, which is no more.
    keepers.forget(sandbox_id);
    const reader = await pods.read(readerName(claim.name));
    if (key !== null && reader !== null && isReusable(reader))
      return keepers.at(sandbox_id, await pods.untilUp(reader));
    await begin('remove another reader');
    await this.#end(readerName(claim.name));
    await begin('make a reader');
    // Somebody has removed it, and without one no reader would start.
    if (key === null)
      await client.create(client.path('secrets'), secretManifest(claim, kernelRandom(KEY_BYTES)));
    const manifest = readerManifest(claim, template, settings);
    return keepers.at(sandbox_id, await pods.untilUp(await pods.create(manifest)));
  }

  /** Removes everything of a sandbox, running or not, and waits until it is gone. Idempotent. */
  async remove(sandbox_id: string, fence?: Fence): Promise<void> {
    const { client, records, keepers, clock } = this.#parts;
    const found = await records.read(sandbox_id);
    const name = found?.claim.name ?? objectName(sandbox_id);
    // One that was never complete has nothing to hand over, and may be created again.
    const is_marked = found === null || ['creating', 'removing'].includes(found.record.state);
    const begin = stepsOf(fence, () => takenBy(found));
    await begin('record the removal');
    if (!is_marked) await records.change(found, { state: 'removing' });
    const claim_path = client.path('persistentvolumeclaims', name);
    keepers.forget(sandbox_id);
    await begin('remove the Pods');
    await this.#kill(sandbox_id);
    await this.#end(readerName(name));
    await begin('remove the secret');
    await client.remove(client.path('secrets', name));
    await begin('remove the volume claim');
    if (!(await client.remove(claim_path))) return;
    const until_ms = runTime(clock).monotonicMs() + REMOVE_TIMEOUT_MS;
    while ((await client.get(claim_path)) !== null) {
      if (runTime(clock).monotonicMs() > until_ms) {
        throw new ApiError('unavailable', "The sandbox's volume is not removed.", { retry_after_s: 1 });
      }
      await sleep(runTime(clock), POLL_MS);
    }
  }
}

function hasEndedRecord({ record: { state } }: FoundRecord): boolean {
  return state === 'ended' || state === 'removing';
}

function isReusable(reader: Pod): boolean {
  const { phase } = reader.status ?? {};
  return !reader.metadata.deletionTimestamp && phase !== 'Failed' && phase !== 'Succeeded';
}
