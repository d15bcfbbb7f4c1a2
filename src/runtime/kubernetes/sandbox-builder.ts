import type { Clock } from '../../base/clock.ts';
import { kernelRandom } from '../../base/entropy.ts';
import type { Log } from '../../base/log.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type { SandboxTemplate, SandboxTemplates } from '../../contract/templates.ts';
import { hold, requestDaemon } from '../control-client.ts';
import {
  DAEMON_CHANGE_TIMEOUT_MS,
  daemonError,
  forkPauseBody,
  initBody,
  isSuccess,
  ServedDaemons,
} from '../daemon-requests.ts';
import type { Fence, ForkFences, MadeSandbox, RuntimeSpec } from '../runtime.ts';
import { type Begin, stepsOf } from '../steps.ts';
import { type ClusterClient, ClusterRefusal, isQuota } from './api/cluster-client.ts';
import type { Pod, VolumeClaim } from './api/objects.ts';
import { KEY_BYTES } from './keeper/keeper-protocol.ts';
import { KeeperClient } from './keeper-client.ts';
import type { Keepers } from './keepers.ts';
import {
  claimManifest,
  type PodSettings,
  podManifest,
  readerTemplate,
  SANDBOX,
  secretManifest,
} from './manifests.ts';
import { labelsOf, objectName } from './names.ts';
import { checkBlocked } from './network-policies.ts';
import { hasUserNamespace, NO_USER_NAMESPACES } from './persistent-roots.ts';
import { withNetwork } from './pod-egress.ts';
import type { Pods } from './pods.ts';
import type { Pool } from './pool.ts';
import {
  annotationsOf,
  type FoundRecord,
  foundIn,
  type KubernetesRecord,
  type Records,
  takenBy,
} from './records.ts';
import { applyFinalResources } from './resize.ts';
import { isPodLost } from './running-sandboxes.ts';
import { orVolumeProblem } from './volume-trouble.ts';

const BY_DIGEST = /^[^\s@]+@sha256:[0-9a-f]{64}$/;

/** What a `KubernetesBuilder` works with. */
export interface KubernetesBuilderParts {
  client: ClusterClient;
  pods: Pods;
  records: Records;
  keepers: Keepers;
  templates: SandboxTemplates;
  settings: PodSettings;
  /** Ranges that webhooks of sandboxes may reach in addition to public addresses. */
  webhook_cidrs: string[];
  pool: Pool;
  clock: Clock;
  log: Log;
  /** Removes everything of a sandbox, running or not. Idempotent. */
  remove: (sandbox_id: string) => Promise<void>;
}

/** What is built: of which template, in place of what remains, and how its daemon gets what is its own. */
interface Building {
  spec: RuntimeSpec;
  template: SandboxTemplate;
  remains: FoundRecord | null;
  is_fork: boolean;
  begin: Begin;
  fill: (keeper: KeeperClient) => Promise<void>;
}

/** Creates sandboxes in the cluster, new ones and copies. If that fails, nothing of the sandbox is left. */
export class KubernetesBuilder {
  readonly #parts: KubernetesBuilderParts;
  readonly #served: ServedDaemons;

  constructor(parts: KubernetesBuilderParts) {
    this.#parts = parts;
    this.#served = new ServedDaemons(parts.log);
  }

  /**
   * Creates a sandbox, or confirms that the existing one was made from the same spec; returns what it was made as. Errors
   * as in `SandboxBuilder.create`.
   */
  async create(spec: RuntimeSpec, fence?: Fence): Promise<MadeSandbox> {
    const template = templateOf(spec.template_id, this.#parts.templates);
    const { records, pods, keepers } = this.#parts;
    const found = await records.read(spec.sandbox_id);
    const begin = stepsOf(fence, () => takenBy(found));
    if (found && found.record.state !== 'creating') {
      const pod = await pods.read(found.claim.name);
      if (
        found.record.state !== 'created' ||
        pod === null ||
        (await isPodLost(pod, keepers, spec.sandbox_id))
      ) {
        throw new ApiError('conflict', 'The sandbox has ended.');
      }
      // The daemon compares the spec with the one it was initialised with.
      await this.#initialise(spec, begin);
      return madeAs(found);
    }
    const made = found === null ? await this.#fromPool(spec, begin) : null;
    const fill = async () => void (await this.#initialise(spec, begin));
    return made ?? this.#build({ spec, template, remains: found, is_fork: false, begin, fill });
  }

  /** Creates a paused copy of a living sandbox. Throws `internal_error` and what the source's daemon refuses. */
  async copy(source_id: string, spec: RuntimeSpec, fences?: ForkFences): Promise<MadeSandbox> {
    const { keepers, pods, records } = this.#parts;
    const named = templateOf(spec.template_id, this.#parts.templates);
    const found = await records.read(source_id);
    const persistent_root = found?.record.persists === 'root';
    const source = found && persistent_root ? await pods.read(found.claim.name) : null;
    const template = {
      ...named,
      persistent_root,
      image: (source && pinnedImage(source)) ?? named.image,
    };
    const remains = await records.read(spec.sandbox_id);
    const begin = stepsOf(fences?.child, () => takenBy(remains));
    const fill = async (keeper: KeeperClient) => {
      if (persistent_root) checkSameImage(source, await pods.read(objectName(spec.sandbox_id)));
      await stepsOf(fences?.source, () => takenBy(found))('hold the source');
      await begin('copy the volume');
      await this.#copyVolume(source_id, keeper, persistent_root);
      await begin('start the daemon');
      await keeper.begin();
      const features = await this.#initialise(spec, begin);
      await begin('pause the copy');
      const answer = await requestDaemon(() => keepers.connect(spec.sandbox_id), {
        method: 'POST',
        path: '/sandbox/pause',
        body: forkPauseBody(features),
        within_ms: DAEMON_CHANGE_TIMEOUT_MS,
      });
      if (!isSuccess(answer)) throw daemonError(answer);
    };
    return this.#build({ spec, template, remains, is_fork: true, begin, fill });
  }

  /** Null where no Pod that waits can be this sandbox. */
  async #fromPool(spec: RuntimeSpec, begin: Begin): Promise<MadeSandbox | null> {
    const { keepers, pool, remove, log } = this.#parts;
    const { sandbox_id } = spec;
    try {
      await begin('take a Pod that waits');
      const taken = await pool.take(
        spec,
        recordOf(spec, templateOf(spec.template_id, this.#parts.templates)),
      );
      if (taken === null) return null;
      const { found, host } = taken;
      keepers.remember(sandbox_id, { host, key: await keepers.keyOf(found.claim.name) });
      await this.#initialise(spec, begin);
      await this.#finish(found, false, begin);
      return madeAs(found);
    } catch (error) {
      await remove(sandbox_id);
      if (!(error instanceof Unreachable)) throw toApiError(error);
      log.warn({ sandbox_id, reason: error.message }, 'a Pod of a pool does not answer: another is made');
      return null;
    }
  }

  async #build({ spec, template, remains, is_fork, begin, fill }: Building): Promise<MadeSandbox> {
    const { client, pods, keepers, settings, clock, remove } = this.#parts;
    const { sandbox_id } = spec;
    if (remains !== null) {
      await begin('remove what was left');
      await remove(sandbox_id);
    }
    if (spec.network_mode === 'block-all') await checkBlocked(client, labelsOf(sandbox_id));
    try {
      await begin('make the volume claim');
      const found = await this.#makeVolumeClaim(spec, template);
      const { claim } = found;
      const key = kernelRandom(KEY_BYTES);
      await begin('make the secret');
      await client.create(client.path('secrets'), secretManifest(claim, key));
      await begin('make the Pod');
      const manifest = podManifest(spec, claim, template, settings, is_fork);
      const pod = await pods.create(withNetwork(manifest, spec));
      if (template.persistent_root && !hasUserNamespace(pod)) {
        throw new ApiError('internal_error', `The sandbox's root cannot persist: ${NO_USER_NAMESPACES}.`);
      }
      const host = await orVolumeProblem(client, clock, claim.name, pods.untilUp(pod));
      const address = { host, key };
      keepers.remember(sandbox_id, address);
      const keeper = new KeeperClient(address, clock);
      const over = new AbortController();
      // A daemon that dies at its start, as without glibc, is not waited for.
      const failed = pods.untilFailed(pod, over.signal);
      const filled = keeper.untilReached().then(() => fill(keeper));
      await Promise.race([filled, failed]).finally(() => over.abort());
      await filled;
      await this.#finish(found, is_fork, begin);
      return madeAs(found);
    } catch (error) {
      await remove(sandbox_id);
      throw toApiError(error);
    }
  }

  async #makeVolumeClaim(spec: RuntimeSpec, template: SandboxTemplate): Promise<FoundRecord> {
    const { client } = this.#parts;
    const { sandbox_id } = spec;
    const given = {
      name: objectName(sandbox_id),
      labels: labelsOf(sandbox_id),
      annotations: annotationsOf(recordOf(spec, template)),
    };
    const manifest = claimManifest(spec, template, given);
    const made = await client.create<VolumeClaim>(client.path('persistentvolumeclaims'), manifest);
    return foundIn(made) as FoundRecord;
  }

  /** The sandbox begins: what was its start's is taken from it, and its record says that it exists. */
  async #finish(found: FoundRecord, is_paused: boolean, begin: Begin): Promise<void> {
    const { client, records } = this.#parts;
    await begin('record the sandbox');
    await Promise.all([
      applyFinalResources(client, found),
      records.change(found, { state: 'created', is_paused }),
    ]);
  }

  /** Gives the daemon's features. */
  async #initialise(spec: RuntimeSpec, begin: Begin): Promise<unknown[]> {
    const { keepers, webhook_cidrs } = this.#parts;
    await begin('initialise the daemon');
    const answer = await requestDaemon(() => keepers.connect(spec.sandbox_id), {
      method: 'POST',
      path: '/sandbox/init',
      body: initBody(spec, webhook_cidrs, spec.network_mode === 'block-all' ? 'manager' : 'direct'),
      within_ms: DAEMON_CHANGE_TIMEOUT_MS,
    });
    if (answer.outcome === 'unreachable')
      throw new Unreachable('internal_error', daemonError(answer).message);
    if (!isSuccess(answer)) throw daemonError(answer);
    return this.#served.check(answer, spec);
  }

  /** The source is held quiescent from before the first file is read until after the last. */
  async #copyVolume(source_id: string, child: KeeperClient, persistent_root: boolean): Promise<void> {
    const { keepers } = this.#parts;
    const held = await hold(() => keepers.connect(source_id), DAEMON_CHANGE_TIMEOUT_MS);
    if ('outcome' in held) throw daemonError(held);
    try {
      await (await keepers.of(source_id)).copyTo(child, persistent_root);
      if (!held.isKept())
        throw new ApiError('internal_error', 'The source resumed while it was being copied.');
    } finally {
      await held.release();
    }
  }
}

/** The template of this name. Throws `invalid_request` if none is configured. */
export function templateOf(name: string, templates: SandboxTemplates): SandboxTemplate {
  const template = templates.get(name);
  if (template === undefined) throw invalidField('template', 'is not one of the configured templates');
  return template;
}

function madeAs({ claim, record }: FoundRecord): MadeSandbox {
  return { pod_name: claim.name, persistence: record.persists };
}

/** The daemon has not answered at all. */
class Unreachable extends ApiError {}

function recordOf(spec: RuntimeSpec, template: SandboxTemplate): KubernetesRecord {
  return {
    sandbox_id: spec.sandbox_id,
    team_id: spec.team_id,
    template: spec.template_id,
    memory_mib: spec.memory_mib,
    cpu_millis: spec.cpu_millis,
    state: 'creating',
    outcome: null,
    persists: template.persistent_root ? 'root' : 'volume',
    reader: readerTemplate(template),
    is_paused: false,
    note: spec.note,
  };
}

/** A refusal of the cluster as an error for the caller; any other error as it is. */
function toApiError(error: unknown): unknown {
  if (!(error instanceof ClusterRefusal)) return error;
  const { message } = error;
  if (isQuota(message)) return new ApiError('capacity_exhausted', `The namespace has no room: ${message}`);
  // What an administrator allows in the namespace (LimitRange).
  const [, bound] = /(m(?:in|ax)imum storage usage per .*)$/i.exec(message) ?? [];
  if (bound) return invalidField('config.resources.disk', `is refused by the cluster: ${bound}`);
  return new ApiError('internal_error', `The cluster refuses the sandbox: ${message}`);
}

/** The image for a copy of a sandbox: by its digest if the node knows that, otherwise by the name that it had. */
function pinnedImage(pod: Pod): string | null {
  const id = imageId(pod);
  if (id !== null && BY_DIGEST.test(id)) return id;
  return pod.spec.containers?.find(({ name }) => name === SANDBOX)?.image ?? null;
}

/** Throws `conflict` if a copy has another image than its source: changes to one image mean nothing on another. */
function checkSameImage(source: Pod | null, child: Pod | null): void {
  const [of_source, of_child] = [source, child].map((pod) => pod && imageId(pod));
  if (of_source && of_source === of_child) return;
  throw new ApiError(
    'conflict',
    "The image has changed since the sandbox was made: its root can't be copied.",
  );
}

function imageId(pod: Pod): string | null {
  return pod.status?.containerStatuses?.find(({ name }) => name === SANDBOX)?.imageID || null;
}
