import type { Clock } from '../../base/clock.ts';
import { DueQueue } from '../due-queue.ts';
import type { FileStat } from '../index/file-stat.ts';
import { GATHER_MS, VANISH_MS, WRITE_GATHER_MS } from '../index/limits.ts';
import type { TreeNode } from '../index/tree-node.ts';
import type { MoveOrigin, Observation } from '../observation.ts';

/** `rename`: an entry appeared or disappeared. `change`: its content or attributes changed. */
export type Signal = 'rename' | 'change';

/** A name to be observed. Its generation is set each time it is put into a queue; 0 means that it is in none. */
export class PendingName implements Observation {
  readonly dir: TreeNode;
  readonly name: string;
  readonly happened_at_ms: number;
  stat: FileStat | null = null;
  renames = 0;
  changed = false;
  from: MoveOrigin | null = null;
  first_from: MoveOrigin | null = null;
  followers: PendingName[] | null = null;
  races = 0;
  generation = 0;
  urgent = false;
  waiting = false;

  constructor(dir: TreeNode, name: string, happened_at_ms: number) {
    this.dir = dir;
    this.name = name;
    this.happened_at_ms = happened_at_ms;
  }

  /** Most names have one follower; an array created for one takes less memory than an array that grew. */
  addFollower(follower: PendingName): void {
    if (this.followers) this.followers.push(follower);
    else this.followers = [follower];
  }
}

/**
 * The names to observe, each once regardless of how many signals it had.
 *
 * | Queue | Holds names that | Due after |
 * |---|---|---|
 * | listed | a scan or the classifier asked for | at once |
 * | appeared | appeared or disappeared | `GATHER_MS`, so that both ends of a move are present |
 * | written | were written | `WRITE_GATHER_MS`, so that a burst of writes is one event |
 * | waiting | wait for vanished nodes to reappear or expire | `VANISH_MS` |
 */
export class PendingNames {
  readonly #clock: Clock;
  readonly #by_dir = new Map<TreeNode, Map<string, PendingName>>();
  readonly #listed = new DueQueue<PendingName>(0);
  readonly #appeared = new DueQueue<PendingName>(GATHER_MS);
  readonly #written = new DueQueue<PendingName>(WRITE_GATHER_MS);
  readonly #waiting = new DueQueue<PendingName>(VANISH_MS);
  #last_generation = 0;
  #last_renamed: PendingName | null = null;
  #size = 0;
  #waiting_size = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of pending names. */
  get size(): number {
    return this.#size;
  }

  /** Number of pending names except those that wait for vanished nodes. */
  get unobserved(): number {
    return this.#size - this.#waiting_size;
  }

  /** The last generation that was assigned. */
  get last_generation(): number {
    return this.#last_generation;
  }

  /** Records a signal. `own`: it may be about the directory itself, whose watch signals its own name too. */
  signal(dir: TreeNode, name: string, signal: Signal, own: boolean): void {
    const pending = this.#get(dir, name);
    if (signal === 'change' || own) {
      if (signal === 'change') pending.changed = true;
      this.#last_renamed = null;
      if (pending.generation === 0) this.#put(pending, signal === 'change' ? this.#written : this.#appeared);
      return;
    }
    const last = this.#last_renamed === pending ? null : this.#last_renamed;
    const from = last && { observation: last, renames: last.renames };
    if (pending.renames++ === 0) pending.first_from = from;
    pending.from = from;
    last?.addFollower(pending);
    this.#last_renamed = pending;
    if (pending.urgent) return;
    pending.urgent = true;
    this.#put(pending, this.#appeared);
  }

  /** Adds a name that no signal named. */
  add(dir: TreeNode, name: string): void {
    const pending = this.#get(dir, name);
    if (pending.generation === 0) this.#put(pending, this.#listed);
  }

  /** Whether a name is pending. */
  has(dir: TreeNode, name: string): boolean {
    return this.#by_dir.get(dir)?.has(name) ?? false;
  }

  /** Adds a name that was written without a signal: its other writes within `WRITE_GATHER_MS` are of the same burst. */
  addWritten(dir: TreeNode, name: string): void {
    const pending = this.#get(dir, name);
    if (pending.generation === 0) this.#put(pending, this.#written);
  }

  /** Puts an observation back: to be due at once, after `GATHER_MS`, or when vanished nodes have expired. */
  requeue(observation: Observation, when: 'now' | 'gathered' | 'vanished'): void {
    const pending = this.#get(observation.dir, observation.name, observation.happened_at_ms);
    pending.renames += observation.renames;
    pending.changed ||= observation.changed;
    pending.races = observation.races + (when === 'gathered' ? 1 : 0);
    pending.urgent = true;
    const queue = { now: this.#listed, gathered: this.#appeared, vanished: this.#waiting }[when];
    this.#put(pending, queue);
  }

  /** Takes at most `max` due names, oldest first. */
  take(max: number): PendingName[] {
    const now_ms = this.#clock.monotonicMs();
    const taken: PendingName[] = [];
    while (taken.length < max) {
      const queue = this.#next();
      const first = queue?.first();
      if (!queue || !first || first.due_ms > now_ms) break;
      queue.shift();
      this.#remove(first.item);
      taken.push(first.item);
    }
    return taken;
  }

  /** Takes one name before it is due, because another one depends on it; null if it is not pending. */
  pull(dir: TreeNode, name: string): PendingName | null {
    const pending = this.#by_dir.get(dir)?.get(name);
    if (!pending) return null;
    this.#remove(pending);
    return pending;
  }

  /** When the next name is due, in monotonic ms; null if none is pending. */
  nextDueMs(): number | null {
    return this.#next()?.first()?.due_ms ?? null;
  }

  /** The oldest generation that is not observed yet, not counting names that wait for vanished nodes; Infinity if none. */
  oldestGeneration(): number {
    const queues = [this.#listed, this.#appeared, this.#written];
    return Math.min(...queues.map((queue) => queue.first()?.generation ?? Number.POSITIVE_INFINITY));
  }

  /** Drops all names in a directory that is gone. */
  forget(dir: TreeNode): void {
    for (const pending of [...(this.#by_dir.get(dir)?.values() ?? [])]) this.#remove(pending);
  }

  /** Drops the names of all directories that have more than `max`, and returns those directories. */
  collapse(max: number): TreeNode[] {
    const crowded = [...this.#by_dir].filter(([, names]) => names.size > max).map(([dir]) => dir);
    for (const dir of crowded) this.forget(dir);
    return crowded;
  }

  #get(dir: TreeNode, name: string, happened_at_ms?: number): PendingName {
    const names = this.#by_dir.get(dir);
    const known = names?.get(name);
    if (known) return known;
    const pending = new PendingName(dir, name, happened_at_ms ?? this.#clock.wallMs());
    if (names) names.set(name, pending);
    else this.#by_dir.set(dir, new Map([[name, pending]]));
    this.#size++;
    return pending;
  }

  #put(pending: PendingName, queue: DueQueue<PendingName>): void {
    pending.generation = ++this.#last_generation;
    this.#setWaiting(pending, queue === this.#waiting);
    queue.put(pending, this.#clock.monotonicMs());
  }

  #setWaiting(pending: PendingName, waiting: boolean): void {
    this.#waiting_size += Number(waiting) - Number(pending.waiting);
    pending.waiting = waiting;
  }

  #remove(pending: PendingName): void {
    const names = this.#by_dir.get(pending.dir);
    if (names?.get(pending.name) !== pending) return;
    names.delete(pending.name);
    if (names.size === 0) this.#by_dir.delete(pending.dir);
    pending.generation = 0;
    this.#setWaiting(pending, false);
    this.#size--;
    if (this.#last_renamed === pending) this.#last_renamed = null;
  }

  #next(): DueQueue<PendingName> | null {
    let next: DueQueue<PendingName> | null = null;
    for (const queue of [this.#listed, this.#appeared, this.#written, this.#waiting]) {
      const first = queue.first();
      if (first && first.due_ms < (next?.first()?.due_ms ?? Number.POSITIVE_INFINITY)) next = queue;
    }
    return next;
  }
}
