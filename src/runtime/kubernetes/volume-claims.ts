import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { type ClusterClient, LIST_PAGE } from './api/cluster-client.ts';
import { ObjectWatch } from './api/object-watch.ts';
import type { KubernetesObject } from './api/objects.ts';
import { MANAGED_SELECTOR, POOL_LABEL, sandboxIdIn } from './names.ts';
import { DamagedRecord, foundIn } from './records.ts';

/** Whose a volume claim is; null where it does not say. */
interface ClaimOwner {
  sandbox_id: string | null;
}

/** Which sandboxes have a volume claim, and so exist. Of the claims the metadata is read, and the ids are kept. */
export class VolumeClaims {
  readonly #client: ClusterClient;
  readonly #log: Log;
  readonly #path: string;
  readonly #watch: ObjectWatch<KubernetesObject, ClaimOwner>;
  readonly #names = new Map<string, string>();

  constructor(client: ClusterClient, clock: Clock, log: Log) {
    this.#client = client;
    this.#log = log;
    const selector = `${MANAGED_SELECTOR},${encodeURIComponent(`!${POOL_LABEL}`)}`;
    this.#path = `${client.path('persistentvolumeclaims')}?labelSelector=${selector}`;
    this.#watch = new ObjectWatch({
      ...{ client, clock, path: this.#path, form: 'metadata', page: LIST_PAGE },
      keep: (claim) => this.#ownerOf(claim),
      onChange: (name, owner, before) => this.#index(name, owner, before),
    });
  }

  /** Begins to follow them. Idempotent. */
  start(): void {
    this.#watch.start();
  }

  /** Follows them no more. Idempotent. */
  async stop(): Promise<void> {
    await this.#watch.stop();
  }

  /** The ids of all sandboxes that exist, as the cluster has last told, or tells now to who does not follow. Throws `unavailable`. */
  async ids(): Promise<string[]> {
    const owners = this.#watch.is_started ? (await this.#watch.known()).values() : await this.#listed();
    return [...owners].flatMap(({ sandbox_id }) => sandbox_id ?? []);
  }

  /** What the objects of a sandbox are called; null if that is not known here. */
  nameOf(sandbox_id: string): string | null {
    return this.#names.get(sandbox_id) ?? null;
  }

  async #listed(): Promise<ClaimOwner[]> {
    const owners: ClaimOwner[] = [];
    const asked = { page: LIST_PAGE, form: 'metadata' } as const;
    for await (const { items } of this.#client.pages<KubernetesObject>(this.#path, asked)) {
      owners.push(...items.map((claim) => this.#ownerOf(claim)));
    }
    return owners;
  }

  /** Whose a claim is, by its record; by its label where somebody has damaged that, which is told. */
  #ownerOf(claim: KubernetesObject): ClaimOwner {
    try {
      return { sandbox_id: foundIn(claim)?.record.sandbox_id ?? null };
    } catch (error) {
      if (!(error instanceof DamagedRecord)) throw error;
      const sandbox_id = sandboxIdIn(claim.metadata);
      this.#log.error({ claim: claim.metadata.name, sandbox_id }, error.message);
      return { sandbox_id };
    }
  }

  #index(name: string, owner: ClaimOwner | null, before: ClaimOwner | null): void {
    const [now_id, before_id] = [owner?.sandbox_id ?? null, before?.sandbox_id ?? null];
    if (before_id !== null && before_id !== now_id && this.#names.get(before_id) === name) {
      this.#names.delete(before_id);
    }
    if (now_id !== null) this.#names.set(now_id, name);
  }
}
