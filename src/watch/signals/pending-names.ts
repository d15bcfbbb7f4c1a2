import type { Clock } from '../../base/clock.ts';
import { DueQueue } from '../due-queue.ts';
import type { FileStat } from '../index/file-stat.ts';
import { GATHER_MS, VANISH_MS, WRITE_GATHER_MS } from '../index/limits.ts';
import type { TreeNode } from '../index/tree.ts';
import type { Observation, Step } from '../observation.ts';

export type Signal = 'rename' | 'change';

/** A name that has to be looked at. Its ticket grows with each time it is put in a queue; 0: in none. */
export class PendingName implements Observation {
  readonly dir: TreeNode;
  readonly name: string;
  readonly happened_at_ms: number;
  facts: FileStat | null = null;
  renames = 0;
  changed = false;
  from: Step | null = null;
  first_from: Step | null = null;
  followers: PendingName[] | null = null;
  races = 0;
  ticket = 0;
  urgent = false;
  waiting = false;

  constructor(dir: TreeNode, name: string, happened_at_ms: number) {
    this.dir = dir;
    this.name = name;
    this.happened_at_ms = happened_at_ms;
  }

  /** Most have one: a list that is made for it takes no room for more, as one that grows does. */
  addFollower(follower: PendingName): void {
    if (this.followers) this.followers.push(follower);
    else this.followers = [follower];
  }
}

/**
 * What has to be looked at, each name once however many signals came: names that appeared or went after 15 ms, so
 * that both ends of a move are there, written ones after 50 ms, so that a burst of writes is one.
 */
export class PendingNames {
  readonly #clock: Clock;
  readonly #by_dir = new Map<TreeNode, Map<string, PendingName>>();
  readonly #listed = new DueQueue<PendingName>(0);
  readonly #appeared = new DueQueue<PendingName>(GATHER_MS);
  readonly #written = new DueQueue<PendingName>(WRITE_GATHER_MS);
  readonly #waiting = new DueQueue<PendingName>(VANISH_MS);
  #last_ticket = 0;
  #last_renamed: PendingName | null = null;
  #size = 0;
  #waiting_size = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#size;
  }

  /** Names that are looked at in any case, whatever becomes of what vanished. */
  get unlooked(): number {
    return this.#size - this.#waiting_size;
  }

  get last_ticket(): number {
    return this.#last_ticket;
  }

  /** Takes in a signal. `own` where it may be about the directory itself, which signals its own name too. */
  signal(dir: TreeNode, name: string, signal: Signal, own: boolean): void {
    const touched = this.#get(dir, name);
    if (signal === 'change' || own) {
      if (signal === 'change') touched.changed = true;
      this.#last_renamed = null;
      if (touched.ticket === 0) this.#put(touched, signal === 'change' ? this.#written : this.#appeared);
      return;
    }
    const last = this.#last_renamed === touched ? null : this.#last_renamed;
    const from = last && { look: last, renames: last.renames };
    if (touched.renames++ === 0) touched.first_from = from;
    touched.from = from;
    last?.addFollower(touched);
    this.#last_renamed = touched;
    if (touched.urgent) return;
    touched.urgent = true;
    this.#put(touched, this.#appeared);
  }

  /** Has a name looked at though no signal named it. */
  touch(dir: TreeNode, name: string): void {
    const touched = this.#get(dir, name);
    if (touched.ticket === 0) this.#put(touched, this.#listed);
  }

  /** Puts looks back, to be taken at once, after another gathering, or when what vanished had its time. */
  again(look: Observation, when: 'now' | 'gathered' | 'vanished'): void {
    const touched = this.#get(look.dir, look.name, look.happened_at_ms);
    touched.renames += look.renames;
    touched.changed ||= look.changed;
    touched.races = look.races + (when === 'gathered' ? 1 : 0);
    touched.urgent = true;
    const queue = { now: this.#listed, gathered: this.#appeared, vanished: this.#waiting }[when];
    this.#put(touched, queue);
  }

  /** Takes what is due, oldest first. */
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

  /** Takes one name before it is due, where it is needed to understand another. */
  pull(dir: TreeNode, name: string): PendingName | null {
    const touched = this.#by_dir.get(dir)?.get(name);
    if (!touched) return null;
    this.#remove(touched);
    return touched;
  }

  /** When the next name is due, in monotonic ms. */
  nextDueMs(): number | null {
    return this.#next()?.first()?.due_ms ?? null;
  }

  /** The ticket of the oldest name that is not looked at yet, those apart that wait for what vanished. */
  oldestTicket(): number {
    const queues = [this.#listed, this.#appeared, this.#written];
    return Math.min(...queues.map((queue) => queue.first()?.ticket ?? Number.POSITIVE_INFINITY));
  }

  /** Drops all names of a directory that is gone. */
  forget(dir: TreeNode): void {
    for (const touched of [...(this.#by_dir.get(dir)?.values() ?? [])]) this.#remove(touched);
  }

  /** Drops the names of directories that have more than `max`, and returns these directories. */
  collapse(max: number): TreeNode[] {
    const crowded = [...this.#by_dir].filter(([, names]) => names.size > max).map(([dir]) => dir);
    for (const dir of crowded) this.forget(dir);
    return crowded;
  }

  #get(dir: TreeNode, name: string, happened_at_ms?: number): PendingName {
    const names = this.#by_dir.get(dir);
    const known = names?.get(name);
    if (known) return known;
    const touched = new PendingName(dir, name, happened_at_ms ?? this.#clock.wallMs());
    if (names) names.set(name, touched);
    else this.#by_dir.set(dir, new Map([[name, touched]]));
    this.#size++;
    return touched;
  }

  #put(touched: PendingName, queue: DueQueue<PendingName>): void {
    touched.ticket = ++this.#last_ticket;
    this.#setWaiting(touched, queue === this.#waiting);
    queue.put(touched, this.#clock.monotonicMs());
  }

  #setWaiting(touched: PendingName, waiting: boolean): void {
    this.#waiting_size += Number(waiting) - Number(touched.waiting);
    touched.waiting = waiting;
  }

  #remove(touched: PendingName): void {
    const names = this.#by_dir.get(touched.dir);
    if (names?.get(touched.name) !== touched) return;
    names.delete(touched.name);
    if (names.size === 0) this.#by_dir.delete(touched.dir);
    touched.ticket = 0;
    this.#setWaiting(touched, false);
    this.#size--;
    if (this.#last_renamed === touched) this.#last_renamed = null;
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
