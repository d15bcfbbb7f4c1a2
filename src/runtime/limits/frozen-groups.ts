import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Clock, runTime, sleep } from '../../base/clock.ts';
import { isHelper, type ProcStat, readPidNamespace } from '../../base/linux/procfs.ts';
import { host_table, type ProcessIdentity } from '../local/host-process.ts';
import { isRemoved, removeGroup } from './control-group.ts';

const NAME = 'frozen';
const POLL_MS = 5;
/** Longer is a storm of new processes, or one that is stuck in the kernel. */
const FREEZE_TIMEOUT_MS = 5_000;

/**
 * Freezes the processes of paused sandboxes by the kernel's control groups. Their daemons have stopped them by then, but a
 * process can have signals sent to itself that let it run again; out of a frozen group there is no way.
 * Source: cgroups(7), `cgroup.freeze`.
 */
export class FrozenGroups {
  /** The folder of the sandboxes' groups in the unified hierarchy; null if there is none. */
  readonly #folder: string | null;

  constructor(folder: string | null) {
    this.#folder = folder;
  }

  /** A phrase, if processes of paused sandboxes are only stopped; else null. */
  limitation(): string | null {
    return this.#folder === null ? 'processes of paused sandboxes are only stopped, and can undo that' : null;
  }

  /**
   * Freezes every process in the pid namespace of a sandbox's daemon but the daemon and its helpers, into which no other
   * process can put code: their programs cannot be read. The first process, of which that is not so, only reaps: it can wait.
   * Resolves when they are frozen, or throws after 5 s. Does nothing for a sandbox without a pid namespace. Idempotent.
   */
  async freeze(sandbox_id: string, daemon: ProcessIdentity, clock: Clock): Promise<void> {
    const group = this.#groupOf(sandbox_id);
    const [namespace = null] = await host_table.namespaces([daemon.pid]);
    if (group === null || namespace === null || namespace === readPidNamespace()) return;
    mkdirSync(group, { recursive: true });
    writeFileSync(join(group, 'cgroup.freeze'), '1');
    const until_ms = runTime(clock).monotonicMs() + FREEZE_TIMEOUT_MS;
    for (;;) {
      const inside = new Set(readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n'));
      const outside = (await movableIn(namespace, daemon.pid)).filter((pid) => !inside.has(pid));
      for (const pid of outside) move(pid, group);
      const is_frozen = readFileSync(join(group, 'cgroup.events'), 'utf8').includes('frozen 1');
      // What was outside may have made more meanwhile.
      if (outside.length === 0 && (is_frozen || inside.size === 1)) return;
      if (runTime(clock).monotonicMs() > until_ms)
        throw new Error('the processes of the sandbox could not be frozen');
      await sleep(runTime(clock), POLL_MS);
    }
  }

  /** Lets a sandbox's processes run again. Idempotent. */
  thaw(sandbox_id: string): void {
    const group = this.#groupOf(sandbox_id);
    if (group === null || !existsSync(group)) return;
    try {
      writeFileSync(join(group, 'cgroup.freeze'), '0');
    } catch (error) {
      // Somebody else has removed it meanwhile.
      if (existsSync(group)) throw error;
    }
  }

  /** Removes the groups of a sandbox whose processes have been killed. Idempotent; throws if one stays for 10 s. */
  async remove(sandbox_id: string, clock: Clock): Promise<void> {
    const group = this.#groupOf(sandbox_id);
    if (group === null || !existsSync(group)) return;
    await removeGroup(group, clock);
    // Where it also has limits, it is removed with them.
    isRemoved(dirname(group));
  }

  #groupOf(sandbox_id: string): string | null {
    return this.#folder && join(this.#folder, sandbox_id, NAME);
  }
}

/** The processes of a daemon's pid namespace but itself and its helpers, which read files of a paused sandbox. */
async function movableIn(namespace: string, daemon_pid: number): Promise<string[]> {
  const stats = await host_table.readAll();
  const daemon = stats.get(daemon_pid);
  if (!daemon) return [];
  const namespaces = await host_table.namespaces([...stats.keys()]);
  return [...stats.values()].flatMap((stat, index) => {
    const seen = namespaces[index];
    // Of one that cannot be asked, its parents say where it belongs.
    const is_inside = seen === undefined ? descends(stat, daemon.parent, stats) : seen === namespace;
    const stays = stat.pid === daemon_pid || isHelper(stat, daemon);
    return is_inside && !stays ? [String(stat.pid)] : [];
  });
}

function descends(stat: ProcStat, from: number, stats: ReadonlyMap<number, ProcStat>): boolean {
  for (let up = stats.get(stat.parent); up; up = stats.get(up.parent)) if (up.pid === from) return true;
  return false;
}

function move(pid: string, group: string): void {
  try {
    writeFileSync(join(group, 'cgroup.procs'), pid);
  } catch (error) {
    // It has ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
