import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { ApiError } from '../../contract/errors.ts';
import type { ClusterClient } from './api/cluster-client.ts';
import type { Secret } from './api/objects.ts';
import { connectDaemon, type KeeperAddress, KeeperClient } from './keeper-client.ts';
import { KEY_FILE } from './manifests.ts';
import type { Pods } from './pods.ts';
import type { Records } from './records.ts';

/** Addresses that are remembered; any can be asked for again. */
const KNOWN_MAX = 10_000;

/**
 * The keepers of sandboxes. An address is remembered, because the cluster is not to be asked for every connection; one that
 * is another Pod's by now cannot be mistaken, as that does not have the key.
 */
export class Keepers {
  readonly #client: ClusterClient;
  readonly #pods: Pods;
  readonly #records: Records;
  readonly #clock: Clock;
  readonly #known = new Map<string, KeeperAddress>();

  constructor(client: ClusterClient, pods: Pods, records: Records, clock: Clock) {
    this.#client = client;
    this.#pods = pods;
    this.#records = records;
    this.#clock = clock;
  }

  /** A new connection to a sandbox's daemon; rejects if that cannot be reached. */
  async connect(sandbox_id: string): Promise<Socket> {
    const known = this.#known.get(sandbox_id);
    if (known !== undefined) {
      try {
        return await connectDaemon(known, this.#clock);
      } catch (error) {
        this.#known.delete(sandbox_id);
        const found = await this.#find(sandbox_id);
        if (found.host === known.host) throw error;
        return connectDaemon(found, this.#clock);
      }
    }
    return connectDaemon(await this.#find(sandbox_id), this.#clock);
  }

  /** The keeper at an address in the cluster. */
  async at(sandbox_id: string, host: string): Promise<KeeperClient> {
    return new KeeperClient({ host, key: await this.#key(sandbox_id) }, this.#clock);
  }

  /** The keeper of a sandbox's Pod. */
  async of(sandbox_id: string): Promise<KeeperClient> {
    return new KeeperClient(await this.#find(sandbox_id), this.#clock);
  }

  /** Remembers where a keeper is. */
  remember(sandbox_id: string, address: KeeperAddress): void {
    const [oldest] = this.#known.keys();
    if (this.#known.size >= KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(sandbox_id, address);
  }

  /** Forgets where a keeper is. */
  forget(sandbox_id: string): void {
    this.#known.delete(sandbox_id);
  }

  /** The key of the keeper in a Pod. */
  async keyOf(pod_name: string): Promise<Buffer> {
    const secret = await this.#client.get<Secret>(this.#client.path('secrets', pod_name));
    const key = secret?.data?.[KEY_FILE];
    if (key === undefined) throw new ApiError('internal_error', "The key of the sandbox's Pod is missing.");
    return Buffer.from(key, 'base64');
  }

  /** Whether a sandbox's keeper answers now, and so proves that its Pod runs. */
  async isReached(sandbox_id: string): Promise<boolean> {
    try {
      (await this.connect(sandbox_id)).destroy();
      return true;
    } catch {
      return false;
    }
  }

  async #find(sandbox_id: string): Promise<KeeperAddress> {
    const name = await this.#records.nameOf(sandbox_id);
    const [pod, key] = await Promise.all([this.#pods.read(name), this.#key(sandbox_id)]);
    const host = pod?.status?.podIP;
    if (!host) throw new ApiError('unavailable', "The sandbox's Pod has no address.", { retry_after_s: 1 });
    const address = { host, key };
    this.remember(sandbox_id, address);
    return address;
  }

  async #key(sandbox_id: string): Promise<Buffer> {
    const known = this.#known.get(sandbox_id);
    if (known) return known.key;
    return this.keyOf(await this.#records.nameOf(sandbox_id));
  }
}
