import type { FileModified } from '../../../../contract/events.ts';
import { type BytePath, below, bytePath, joined, pathFields } from '../../../../files/byte-path.ts';
import type { TreeFollower } from './watched-tree.ts';
import type { Following, WatchedTrees } from './watched-trees.ts';

/** What a subscription needs of its connection. */
export interface SubscriptionLink {
  /** Whether the client is too slow for more. */
  isBehind(): boolean;
  /** Resolves once it has taken what was sent; never where it is gone. */
  caughtUp(): Promise<void>;
  send(message: object): void;
  onFailure(watch_id: string, error: unknown): void;
}

/** What is watched, and for whom. */
export interface SubscriptionParts {
  watch_id: string;
  /** As the client named it, without a final slash. */
  path: BytePath;
  /** Where it really is. */
  real: BytePath;
  recursive: boolean;
  trees: WatchedTrees;
  link: SubscriptionLink;
}

/** One subscription of a client. A client that is too slow is told so, and then of the differences. */
export class Subscription implements TreeFollower {
  readonly #parts: SubscriptionParts;
  #following: Following | null = null;
  #is_stopped = false;

  constructor(parts: SubscriptionParts) {
    this.#parts = parts;
  }

  /** Resolves when every later change will be told. Throws `too_many_requests`. */
  async start(): Promise<void> {
    const { trees, real, recursive } = this.#parts;
    await this.#keep(await trees.follow(asText(real), recursive, this));
  }

  /** Frees what it holds. Idempotent. */
  async stop(): Promise<void> {
    this.#is_stopped = true;
    await this.#following?.stop();
  }

  onChanges(changes: readonly FileModified[]): void {
    const { link } = this.#parts;
    // A tree that is not kept yet has not been told to the client.
    if (this.#is_stopped || !this.#following) return;
    if (link.isBehind()) void this.#compareLater(this.#following);
    else for (const change of changes) this.#send(change);
  }

  async #compareLater(following: Following): Promise<void> {
    const { trees, link, watch_id, real, recursive } = this.#parts;
    const rows = following.tree.snapshot();
    this.#following = null;
    try {
      await following.stop();
      await link.caughtUp();
      if (this.#is_stopped) return;
      link.send({ type: 'overflow', watch_id });
      const resumed: TreeFollower = { onChanges: (changes) => this.#resumed(changes) };
      await this.#keep(await trees.compare(asText(real), recursive, resumed, rows));
    } catch (error) {
      link.onFailure(watch_id, error);
    }
  }

  /** The differences come before the tree is kept; from then on it is like any other. */
  #resumed(changes: readonly FileModified[]): void {
    if (this.#following) this.onChanges(changes);
    else if (!this.#is_stopped) for (const change of changes) this.#send(change);
  }

  async #keep(following: Following): Promise<void> {
    this.#following = following;
    if (this.#is_stopped) await following.stop();
  }

  #send({ event_type, ...change }: FileModified): void {
    const path = this.#shown(change.path, change.path_base64);
    const old_path =
      change.old_path === undefined ? null : this.#shown(change.old_path, change.old_path_base64);
    if (event_type !== 'rename') {
      if (path !== null) this.#tell(event_type, path);
    } else if (path !== null && old_path !== null) this.#tell('rename', path, old_path);
    else if (path !== null) this.#tell('create', path);
    else if (old_path !== null) this.#tell('remove', old_path);
  }

  #tell(event: string, path: BytePath, old_path?: BytePath): void {
    const { link, watch_id } = this.#parts;
    const { path: old, path_base64: old_base64 } = old_path === undefined ? {} : pathFields(old_path);
    link.send({
      type: 'event',
      watch_id,
      event,
      ...pathFields(path),
      ...(old === undefined ? {} : { old_path: old }),
      ...(old_base64 === undefined ? {} : { old_path_base64: old_base64 }),
    });
  }

  /** A path as the client knows it; null for one that it does not follow. */
  #shown(text: string, base64: string | undefined): BytePath | null {
    const { path, real, recursive } = this.#parts;
    const bytes = base64 === undefined ? bytePath(text) : Buffer.from(base64, 'base64').toString('latin1');
    const relative = below(real, bytes);
    if (relative === null || (!recursive && relative.includes('/'))) return null;
    return relative === '' ? path : joined(path, relative);
  }
}

function asText(path: BytePath): string {
  return Buffer.from(path, 'latin1').toString();
}
