import { createHash } from 'node:crypto';
import { kernelRandom } from '../../base/entropy.ts';
import type { SandboxTemplate, TemplatePool } from '../../contract/templates.ts';
import { type ClusterClient, ClusterRefusal } from './api/cluster-client.ts';
import type { KubernetesObject, Meta, VolumeClaim } from './api/objects.ts';
import { KEY_BYTES } from './keeper/keeper-protocol.ts';
import { claimManifest, type PodSettings, podManifest, secretManifest } from './manifests.ts';
import { MANAGED, POOL_LABEL, selectorOf } from './names.ts';
import type { Pods } from './pods.ts';

const NAME_BYTES = 10;
const KEY_LENGTH = 40;
const GRACE_S = 1;

/** What the Pods of a pool are made of. */
export interface PoolKind {
  /** The template's name. */
  template_name: string;
  template: SandboxTemplate;
  pool: TemplatePool;
  /** Of two pools with the same key the Pods are alike: what a template is made of, and by which version. */
  key: string;
}

/** Names what a template's pool is made of. */
export function poolKind(
  template_name: string,
  template: SandboxTemplate,
  pool: TemplatePool,
  settings: PodSettings,
): PoolKind {
  const owner: Meta = { name: '', uid: '', resourceVersion: '' };
  const made = [
    template_name,
    claimManifest(pool, template, { name: '', labels: {} }),
    podManifest(pool, owner, template, settings, false),
  ];
  const key = createHash('sha256').update(JSON.stringify(made)).digest('hex').slice(0, KEY_LENGTH);
  return { template_name, template, pool, key };
}

/** What waits in pools, in the cluster: a volume claim, a Pod and the key of its keeper; nothing in them is anybody's yet. */
export class PoolStore {
  readonly #client: ClusterClient;
  readonly #pods: Pods;
  readonly #settings: PodSettings;

  constructor(client: ClusterClient, pods: Pods, settings: PodSettings) {
    this.#client = client;
    this.#pods = pods;
    this.#settings = settings;
  }

  /** The claims that wait in a pool, or in any; also those that are being removed. */
  async list(key: string | null): Promise<Meta[]> {
    const selector = key === null ? POOL_LABEL : selectorOf({ [POOL_LABEL]: key });
    const path = `${this.#client.path('persistentvolumeclaims')}?labelSelector=${selector}`;
    const claims = await this.#client.list<KubernetesObject>(path, 'metadata');
    return claims.map(({ metadata }) => metadata);
  }

  /** Makes one more. */
  async add({ template, pool, key }: PoolKind): Promise<void> {
    const name = `pool-${kernelRandom(NAME_BYTES).toString('hex')}`;
    const labels = { ...MANAGED, [POOL_LABEL]: key };
    const claims = this.#client.path('persistentvolumeclaims');
    const manifest = claimManifest(pool, template, { name, labels });
    const { metadata } = await this.#client.create<VolumeClaim>(claims, manifest);
    try {
      const secret = secretManifest(metadata, kernelRandom(KEY_BYTES));
      await this.#client.create(this.#client.path('secrets'), secret);
      await this.#pods.create(podManifest(pool, metadata, template, this.#settings, false));
    } catch (error) {
      await this.remove(metadata);
      throw error;
    }
  }

  /**
   * Removes one, unless somebody has taken it since it was read: then false. Its claim is listed until its node has ended
   * the Pod; until then it may be removed again.
   */
  async remove({ name, resourceVersion }: Meta): Promise<boolean> {
    try {
      const claim = this.#client.path('persistentvolumeclaims', name);
      await this.#client.remove(claim, { version: resourceVersion });
    } catch (error) {
      if (error instanceof ClusterRefusal && error.status === 409) return false;
      throw error;
    }
    await this.#client.remove(this.#client.path('pods', name), { grace_s: GRACE_S });
    await this.#client.remove(this.#client.path('secrets', name));
    return true;
  }
}
