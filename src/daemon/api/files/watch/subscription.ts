import type { FileModified } from '../../../../contract/events.ts';
import { type BytePath, below, bytePath, joined, pathFields } from '../../../../files/byte-path.ts';
import { differences } from '../../../../watch/classify/differences.ts';
import { nameOf } from '../../../../watch/index/name.ts';
import type { TreeFollower, TreeState, WatchedTree } from './watched-tree.ts';
import type { WatchedTrees } from './watched-trees.ts';

/** Changes that wait while states are compared; with more, they are compared again. */
const HELD_MAX = 10_000;

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

/** While states are compared. */
interface Comparing {
  /** Later changes; null where they cannot be told one by one, and the states must be compared again. */
  held: FileModified[] | null;
}

/**
 * One subscription of a client. A client that is too slow is told so, and then of the differences; so is one, without
 * having to be told, whose directory has moved as a whole or is now part of another tree.
 */
export class Subscription implements TreeFollower {
  readonly #parts: SubscriptionParts;
  /** Null until the client may be told. */
  #tree: WatchedTree | null = null;
  #comparing: Comparing | null = null;
  #is_stopped = false;

  constructor(parts: SubscriptionParts) {
    this.#parts = parts;
  }

  /** Resolves when every later change will be told. Throws `too_many_requests`. */
  async start(): Promise<void> {
    const { trees, real, recursive } = this.#parts;
    this.#tree = await trees.follow(watchedPath(real), recursive, this);
    if (this.#is_stopped) await this.stop();
  }

  /** Frees what it holds. Idempotent. */
  async stop(): Promise<void> {
    this.#is_stopped = true;
    await this.#parts.trees.leave(this);
  }

  onChanges(changes: readonly FileModified[]): void {
    // A tree that is not kept yet has not been told to the client.
    if (this.#is_stopped || !this.#tree) return;
    if (this.#comparing) this.#hold(this.#comparing, changes);
    else if (this.#parts.link.isBehind()) void this.#compareFrom(this.#tree.state(), true);
    else if (changes.some((change) => this.#movesTree(change)))
      void this.#compareFrom(this.#tree.state(), false);
    else for (const change of changes) this.#send(change);
  }

  onMoved(tree: WatchedTree): void {
    const former = this.#tree;
    if (!former) return;
    this.#tree = tree;
    // What is being compared already is compared with the state of this one.
    if (this.#comparing) this.#comparing.held = null;
    else void this.#compareFrom(former.state(), false);
  }

  #hold(comparing: Comparing, changes: readonly FileModified[]): void {
    const { held } = comparing;
    if (held === null) return;
    const is_too_much = held.length + changes.length > HELD_MAX;
    if (is_too_much || changes.some((change) => this.#movesTree(change))) comparing.held = null;
    else held.push(...changes);
  }

  /** Tells the differences from a state that the client knows, and then goes on. */
  async #compareFrom(known: TreeState, is_behind: boolean): Promise<void> {
    const { link, watch_id } = this.#parts;
    const comparing: Comparing = { held: null };
    this.#comparing = comparing;
    let from = known;
    let must_tell = is_behind;
    try {
      for (;;) {
        // The change that led here becomes part of the state first.
        await null;
        if (must_tell) {
          await link.caughtUp();
          if (!this.#is_stopped) link.send({ type: 'overflow', watch_id });
        }
        if (this.#is_stopped) return;
        comparing.held = [];
        const to = (this.#tree as WatchedTree).state();
        await this.#tellDifferences(from, to);
        const held = comparing.held as FileModified[] | null;
        must_tell = held?.length !== 0 && link.isBehind();
        if (held !== null && !must_tell) {
          this.#comparing = null;
          if (!this.#is_stopped) for (const change of held) this.#send(change);
          return;
        }
        from = to;
      }
    } catch (error) {
      link.onFailure(watch_id, error);
    }
  }

  async #tellDifferences(from: TreeState, to: TreeState): Promise<void> {
    const { real, link } = this.#parts;
    const changes = differences(await from.tree(), await to.tree(), watchedPath(real));
    for (const change of changes) {
      if (link.isBehind()) await link.caughtUp();
      if (this.#is_stopped) return;
      this.#send(change);
    }
  }

  /** Whether a moved directory takes along what is in it, into the watched tree or out of it, or the whole tree. */
  #movesTree({ event_type, is_directory, ...change }: FileModified): boolean {
    if (event_type !== 'rename' || !is_directory) return false;
    const { real, recursive } = this.#parts;
    const paths = [
      bytesOf(change.path, change.path_base64),
      bytesOf(change.old_path ?? '', change.old_path_base64),
    ];
    if (paths.some((path) => below(path, real) !== null)) return true;
    const [to, from] = paths.map((path) => below(real, path) !== null);
    return recursive && to !== from;
  }

  #send({ event_type, ...change }: FileModified): void {
    const path = this.#shown(bytesOf(change.path, change.path_base64));
    const old_path =
      change.old_path === undefined ? null : this.#shown(bytesOf(change.old_path, change.old_path_base64));
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
  #shown(bytes: BytePath): BytePath | null {
    const { path, real, recursive } = this.#parts;
    const relative = below(real, bytes);
    if (relative === null || (!recursive && relative.includes('/'))) return null;
    return relative === '' ? path : joined(path, relative);
  }
}

/** A path of an event. */
function bytesOf(text: string, base64: string | undefined): BytePath {
  return base64 === undefined ? bytePath(text) : Buffer.from(base64, 'base64').toString('latin1');
}

/** A path as the watch names it. */
function watchedPath(path: BytePath): string {
  return path
    .split('/')
    .map((name) => nameOf(Buffer.from(name, 'latin1')))
    .join('/');
}
