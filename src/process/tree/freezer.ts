import { createHash } from 'node:crypto';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, runTime, sleep, type Timer } from '../../base/clock.ts';
import { ownGroup, unifiedPath } from '../../base/linux/cgroup.ts';
import type { ProcStat } from '../../base/linux/procfs.ts';
import type { Log } from '../../base/log.ts';
import { trySignal } from './terminate-tree.ts';
import type { TreeFinder, TreeRoot } from './tree.ts';

const POLL_MS = 5;
const JOIN_DELAY_MS = 1_000;
/** How long the kernel may take to freeze a group before processes that still run are stopped by signal. */
const FREEZE_TIMEOUT_MS = 2_000;

/**
 * Stops whole process trees and resumes them.
 *
 * If the daemon may create a group in the unified cgroup hierarchy, every process that lasts is moved into it and the
 * kernel freezes the group as one. Processes outside the group (too young, forked before the move, moved elsewhere
 * since), or all processes if there is no group, are stopped by SIGSTOP. A process that was stopped before the freeze
 * stays stopped after the thaw.
 */
export class Freezer {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #trees: TreeFinder;
  readonly #name: string;
  /** Folder of the group, and the group's name as /proc shows it. */
  #group: { folder: string; path: string } | null = null;
  #stopped: ProcStat[] = [];
  #joining: (() => TreeRoot | null)[] = [];
  #timer: Timer | null = null;

  /** `directory` makes the name of the group unique to this daemon. */
  constructor(clock: Clock, log: Log, trees: TreeFinder, directory: string) {
    this.#clock = clock;
    this.#log = log;
    this.#trees = trees;
    this.#name = `sandboxd-${createHash('sha256').update(directory).digest('hex').slice(0, 12)}`;
  }

  /** Creates the group if possible, and thaws what an earlier daemon left frozen in it. */
  async open(): Promise<void> {
    const own = await ownGroup();
    if (!own) return;
    const group = { folder: join(own.folder, this.#name), path: join(own.path, this.#name) };
    try {
      await mkdir(group.folder, { recursive: true });
      await writeFile(join(group.folder, 'cgroup.freeze'), '0');
      this.#group = group;
    } catch (error) {
      this.#log.debug({ err: error }, 'cannot create a cgroup: processes are paused by SIGSTOP');
    }
  }

  /** Removes the group if it is empty. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    const group = this.#group;
    this.#group = null;
    if (group) await rmdir(group.folder).catch(() => {}); // not empty: the next daemon uses it again
  }

  /**
   * Moves a new tree into the group after a second; its later descendants start there. `root` gives null once it has
   * ended. The delay spares short processes the move, which blocks every fork of the machine for milliseconds.
   */
  add(root: () => TreeRoot | null): void {
    if (!this.#group) return;
    this.#joining.push(root);
    this.#timer ??= this.#clock.after(JOIN_DELAY_MS, () => void this.#join());
  }

  /** Resolves when every member of these trees is stopped, or after a time limit, which is logged. */
  async freeze(roots: readonly TreeRoot[]): Promise<void> {
    if (this.#group) await this.#freezeGroup(this.#group.folder).catch((error) => this.#loseGroup(error));
    const signalled = new Set<string>();
    const clock = runTime(this.#clock);
    const until_ms = clock.monotonicMs() + FREEZE_TIMEOUT_MS;
    // Repeated, to find what was forked while the others were being stopped.
    for (;;) {
      const running = await this.#findRunning(roots);
      if (running.length === 0) return;
      for (const stat of await this.#trees.stillThere(running)) {
        // Repeated while it runs: a tracer may have withheld the first signal.
        const is_sent = trySignal(stat.pid, 'SIGSTOP');
        const key = `${stat.pid}.${stat.start_ticks}`;
        if (is_sent && !signalled.has(key)) this.#stopped.push(stat);
        signalled.add(key);
      }
      if (clock.monotonicMs() > until_ms) return this.#log.warn('not every process stopped in time');
      await sleep(clock, POLL_MS);
    }
  }

  /** Resumes everything that `freeze` stopped. */
  async thaw(): Promise<void> {
    if (this.#group) {
      await writeFile(join(this.#group.folder, 'cgroup.freeze'), '0').catch((error) =>
        this.#log.error({ err: error }, 'cannot thaw the cgroup of the processes'),
      );
    }
    // Children first: a shell that sees a child stopped takes it for a job that was suspended.
    await this.#wake(this.#stopped.splice(0).reverse());
  }

  /** Resumes trees that an earlier daemon stopped by signal. */
  async release(roots: readonly TreeRoot[]): Promise<void> {
    for (const members of await this.#trees.find(roots))
      await this.#wake(members.reverse().filter(({ state }) => state === 'T'));
  }

  async #wake(stats: readonly ProcStat[]): Promise<void> {
    for (const { pid } of await this.#trees.stillThere(stats)) trySignal(pid, 'SIGCONT');
  }

  async #join(): Promise<void> {
    const roots = this.#joining.splice(0).flatMap((root) => root() ?? []);
    await this.#move(roots).catch((error) =>
      this.#log.debug({ err: error }, 'cannot move processes into the cgroup'),
    );
    this.#timer = this.#joining.length > 0 ? this.#clock.after(JOIN_DELAY_MS, () => void this.#join()) : null;
  }

  async #move(roots: readonly TreeRoot[]): Promise<void> {
    const members = (await this.#trees.find(roots)).flat();
    const are_in = await Promise.all(members.map(({ pid }) => this.#isInGroup(pid)));
    const outside = members.filter((_, index) => !are_in[index]);
    for (const { pid } of await this.#trees.stillThere(outside)) {
      if (!this.#group) return; // closed meanwhile
      await writeFile(join(this.#group.folder, 'cgroup.procs'), String(pid)).catch(() => {}); // it has ended
    }
  }

  /** Gives up a group that can no longer be frozen; its members are stopped by signal. */
  async #loseGroup(error: unknown): Promise<void> {
    this.#log.warn({ err: error }, 'cannot freeze the cgroup of the processes: they are stopped by SIGSTOP');
    if (this.#group) await writeFile(join(this.#group.folder, 'cgroup.freeze'), '0').catch(() => {});
    this.#group = null;
  }

  async #freezeGroup(folder: string): Promise<void> {
    await writeFile(join(folder, 'cgroup.freeze'), '1');
    const clock = runTime(this.#clock);
    const until_ms = clock.monotonicMs() + FREEZE_TIMEOUT_MS;
    while (clock.monotonicMs() < until_ms) {
      const events = await readFile(join(folder, 'cgroup.events'), 'latin1');
      if (/^frozen 1$/m.test(events)) return;
      await sleep(clock, POLL_MS);
    }
    this.#log.warn('the kernel did not freeze every process in time');
  }

  async #findRunning(roots: readonly TreeRoot[]): Promise<ProcStat[]> {
    const members = await this.#trees.findAll(roots);
    const candidates = members.filter(({ state }) => state !== 'T' && state !== 't');
    const frozen = await Promise.all(candidates.map(({ pid }) => this.#isInGroup(pid)));
    return candidates.filter((_, index) => !frozen[index]);
  }

  async #isInGroup(pid: number): Promise<boolean> {
    const group = this.#group;
    if (!group) return false;
    const path = await unifiedPath(pid);
    return path === group.path || (path?.startsWith(`${group.path}/`) ?? false);
  }
}
