import type { Clock } from '../../base/clock.ts';
import { kernelRandom } from '../../base/entropy.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type { SandboxTemplate, SandboxTemplates } from '../../contract/templates.ts';
import { hold, requestDaemon } from '../control-client.ts';
import { daemonError, initBody, isSuccess } from '../daemon-answers.ts';
import { CHANGE_TIMEOUT_MS } from '../running-sandbox.ts';
import type { RuntimeSpec } from '../runtime.ts';
import { type ClusterClient, ClusterRefusal } from './api/cluster-client.ts';
import type { VolumeClaim } from './api/objects.ts';
import { KEY_BYTES } from './keeper/keeper-protocol.ts';
import { KeeperClient } from './keeper-client.ts';
import type { Keepers } from './keepers.ts';
import { claimManifest, type PodSettings, podManifest, secretManifest } from './manifests.ts';
import { objectName } from './names.ts';
import { isUp } from './pod-state.ts';
import type { Pods } from './pods.ts';
import { annotationsOf, type FoundRecord, foundIn, type KubernetesRecord, type Records } from './records.ts';

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
  clock: Clock;
  /** Removes everything of a sandbox, running or not. Idempotent. */
  remove: (sandbox_id: string) => Promise<void>;
}

/** Creates sandboxes in the cluster, new ones and copies. If that fails, nothing of the sandbox is left. */
export class KubernetesBuilder {
  readonly #parts: KubernetesBuilderParts;

  constructor(parts: KubernetesBuilderParts) {
    this.#parts = parts;
  }

  /** Creates a sandbox, or confirms that the existing one was made from the same spec. Errors as in `SandboxBuilder.create`. */
  async create(spec: RuntimeSpec): Promise<void> {
    const template = this.#template(spec);
    const { records, pods } = this.#parts;
    const found = await records.read(spec.sandbox_id);
    if (found && found.record.state !== 'creating') {
      const pod = await pods.read(objectName(spec.sandbox_id));
      if (found.record.state !== 'created' || pod === null || !isUp(pod)) {
        throw new ApiError('conflict', 'The sandbox has ended.');
      }
      // The daemon compares the spec with the one it was initialised with.
      return this.#initialise(spec);
    }
    await this.#build(spec, template, false, () => this.#initialise(spec));
  }

  /** Creates a paused copy of a living sandbox. Throws `internal_error` and what the source's daemon refuses. */
  async copy(source_id: string, spec: RuntimeSpec): Promise<void> {
    const template = this.#template(spec);
    const { keepers } = this.#parts;
    await this.#build(spec, template, true, async (keeper) => {
      await this.#copyVolume(source_id, keeper);
      await keeper.begin();
      await this.#initialise(spec);
      const answer = await requestDaemon(() => keepers.connect(spec.sandbox_id), {
        ...{ method: 'POST', path: '/sandbox/pause', body: { reason: 'fork' }, within_ms: CHANGE_TIMEOUT_MS },
      });
      if (!isSuccess(answer)) throw daemonError(answer);
    });
  }

  #template({ template_id }: RuntimeSpec): SandboxTemplate {
    const template = this.#parts.templates.get(template_id);
    if (template === undefined) throw invalidField('template', 'is not one of the configured templates');
    return template;
  }

  async #build(
    spec: RuntimeSpec,
    template: SandboxTemplate,
    is_fork: boolean,
    fill: (keeper: KeeperClient) => Promise<void>,
  ): Promise<void> {
    const { client, pods, records, keepers, settings, clock, remove } = this.#parts;
    const { sandbox_id } = spec;
    await remove(sandbox_id);
    try {
      const { claim, record } = await this.#claim(spec, template);
      const key = kernelRandom(KEY_BYTES);
      await client.create(client.path('secrets'), secretManifest(sandbox_id, claim, key));
      const pod = await pods.create(podManifest(spec, claim, template, settings, is_fork));
      const address = { host: await pods.untilUp(pod), key };
      keepers.remember(sandbox_id, address);
      const keeper = new KeeperClient(address, clock);
      const over = new AbortController();
      // A daemon that dies at its start, as without glibc, is not waited for.
      const failed = pods.untilFailed(pod, over.signal);
      const filled = keeper.untilReached().then(() => fill(keeper));
      await Promise.race([filled, failed]).finally(() => over.abort());
      await filled;
      await records.change({ claim, record }, { state: 'created', is_paused: is_fork });
    } catch (error) {
      await remove(sandbox_id);
      throw named(error);
    }
  }

  async #claim(spec: RuntimeSpec, template: SandboxTemplate): Promise<FoundRecord> {
    const { client } = this.#parts;
    const record: KubernetesRecord = {
      sandbox_id: spec.sandbox_id,
      team_id: spec.team_id,
      template: spec.template_id,
      memory_mib: spec.memory_mib,
      cpu_millis: spec.cpu_millis,
      state: 'creating',
      outcome: null,
      is_paused: false,
    };
    const manifest = claimManifest(spec, template, annotationsOf(record));
    const made = await client.create<VolumeClaim>(client.path('persistentvolumeclaims'), manifest);
    return foundIn(made) as FoundRecord;
  }

  async #initialise(spec: RuntimeSpec): Promise<void> {
    const { keepers, webhook_cidrs } = this.#parts;
    const answer = await requestDaemon(() => keepers.connect(spec.sandbox_id), {
      method: 'POST',
      path: '/sandbox/init',
      body: initBody(spec, webhook_cidrs, 'direct'),
      within_ms: CHANGE_TIMEOUT_MS,
    });
    if (!isSuccess(answer)) throw daemonError(answer);
  }

  /** The source is held quiescent from before the first file is read until after the last. */
  async #copyVolume(source_id: string, child: KeeperClient): Promise<void> {
    const { keepers } = this.#parts;
    const held = await hold(() => keepers.connect(source_id), CHANGE_TIMEOUT_MS);
    if ('outcome' in held) throw daemonError(held);
    try {
      await (await keepers.of(source_id)).copyTo(child);
      if (!held.isKept())
        throw new ApiError('internal_error', 'The source resumed while it was being copied.');
    } finally {
      await held.release();
    }
  }
}

/** What the cluster refuses, in a line for the caller. */
function named(error: unknown): unknown {
  if (!(error instanceof ClusterRefusal)) return error;
  if (/exceeded quota/.test(error.message)) {
    return new ApiError('capacity_exhausted', `The namespace has no room: ${error.message}`);
  }
  return new ApiError('internal_error', `The cluster refuses the sandbox: ${error.message}`);
}
