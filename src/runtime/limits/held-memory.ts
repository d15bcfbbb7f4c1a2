import { existsSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, runTime } from '../../base/clock.ts';
import type { Hierarchy } from '../../base/linux/cgroup.ts';
import { PAUSED_MEMORY_MIB } from '../../contract/defaults.ts';

const MIB = 1024 * 1024;
/** What is asked of the kernel at once: as much as it takes a moment for. */
const STEP_BYTES = 64 * MIB;
/** A step that frees less has found nothing more. */
const PROGRESS_BYTES = MIB;
/** However slow the disk is, a pause takes no longer for it: what is not given back by then is charged. */
const RECLAIM_TIMEOUT_MS = 2_000;
/** What a daemon needs beside what it holds already: a client that reads files makes it start a process for them. */
const ROOM_BYTES = 64 * MIB;

/** The folder in which sandboxes have their groups of memory. */
export interface MemoryFolder extends Pick<Hierarchy, 'version'> {
  folder: string;
}

/** What a group holds, in bytes. */
interface Held {
  all: number;
  /** Of files, which the kernel takes back when somebody else needs it. */
  cache: number;
}

/**
 * The memory that paused sandboxes hold. At a pause what can be given back is given back: on version 2 by
 * `memory.reclaim`, also to swap, which only paused sandboxes have. What is left, with some room for the daemon, becomes
 * the bound of the sandbox's group, so that what is charged for it is all that it can take until it is resumed.
 */
export class HeldMemory {
  readonly #groups: MemoryFolder | null;
  readonly #hasSwap: () => boolean;

  /** `groups`: null where the memory of sandboxes is not limited. */
  constructor(groups: MemoryFolder | null, hasSwap = machineHasSwap) {
    this.#groups = groups;
    this.#hasSwap = hasSwap;
  }

  /**
   * Bounds a paused sandbox that leases `lease_mib` to what it holds, and gives that in MiB; null where that cannot be
   * done: it may hold all of its lease. Never rejects; takes about 2 s at most. Idempotent.
   */
  async bound(sandbox_id: string, lease_mib: number, clock: Clock): Promise<number | null> {
    const group = this.#groups && join(this.#groups.folder, sandbox_id);
    if (group === null || !existsSync(group)) return null;
    const within = deadline(clock);
    const lease = lease_mib * MIB;
    try {
      const bound = this.#groups?.version === 1 ? boundByLimit : this.#boundByReclaim.bind(this);
      return Math.ceil((await bound(group, lease, within)) / MIB);
    } catch {
      return null;
    }
  }

  /** Version 2 kills what a new bound has no room for: only what is free already may be outside of it. */
  async #boundByReclaim(group: string, lease: number, within: () => boolean): Promise<number> {
    const has_swap = this.#hasSwap() && existsSync(join(group, 'memory.swap.max'));
    if (has_swap) await writeFile(join(group, 'memory.swap.max'), String(lease));
    if (existsSync(join(group, 'memory.reclaim'))) await reclaim(group, has_swap, within);
    const held = await readHeld(group, 2);
    const bound = Math.min(lease, Math.max(wantedOf(held), held.all + PROGRESS_BYTES));
    await writeFile(join(group, 'memory.max'), String(bound));
    return bound;
  }
}

/** Asks the kernel for memory, step by step, until there is no more than is wanted, or it has no more to give. */
async function reclaim(group: string, has_swap: boolean, within: () => boolean): Promise<void> {
  let held = await readHeld(group, 2);
  while (within()) {
    const excess = held.all - (has_swap ? PAUSED_MEMORY_MIB * MIB - ROOM_BYTES : wantedOf(held));
    if (excess < PROGRESS_BYTES) return;
    // EAGAIN: it was less; what remains is read. Any other refusal is no reason not to pause.
    await writeFile(join(group, 'memory.reclaim'), String(Math.min(STEP_BYTES, excess))).catch(() => {});
    const before = held.all;
    held = await readHeld(group, 2);
    if (before - held.all < PROGRESS_BYTES) return;
  }
}

/** Version 1 frees memory to hold to a new limit, and refuses one that it cannot hold to: the last that it takes is true. */
async function boundByLimit(group: string, lease: number, within: () => boolean): Promise<number> {
  const held = await readHeld(group, 1);
  const wanted = Math.min(lease, wantedOf(held));
  let bound = lease;
  for (let next = Math.min(lease, Math.max(wanted, held.all)); within(); ) {
    next = Math.max(wanted, next - STEP_BYTES);
    try {
      await writeFile(join(group, 'memory.limit_in_bytes'), String(next));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
      break;
    }
    bound = next;
    if (next === wanted) break;
  }
  return bound;
}

/** What a paused sandbox should have, whole MiB in bytes. */
function wantedOf({ all, cache }: Held): number {
  return Math.max(PAUSED_MEMORY_MIB, Math.ceil((Math.max(0, all - cache) + ROOM_BYTES) / MIB)) * MIB;
}

/** Source: the kernel's cgroup-v1 and cgroup-v2 documents, `memory.stat`: pages of tmpfs and shared memory are not among those of files. */
async function readHeld(group: string, version: Hierarchy['version']): Promise<Held> {
  const read = (file: string) => readFile(join(group, file), 'latin1');
  const all = await read(version === 1 ? 'memory.usage_in_bytes' : 'memory.current');
  const stat = await read('memory.stat');
  const field = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0);
  const prefix = version === 1 ? 'total_' : '';
  return { all: Number(all), cache: field(`${prefix}active_file`) + field(`${prefix}inactive_file`) };
}

function deadline(clock: Clock): () => boolean {
  const until_ms = runTime(clock).monotonicMs() + RECLAIM_TIMEOUT_MS;
  return () => runTime(clock).monotonicMs() < until_ms;
}

/** Source: proc_swaps(5): a heading, then a line for each. */
function machineHasSwap(): boolean {
  return existsSync('/proc/swaps') && readFileSync('/proc/swaps', 'latin1').trim().includes('\n');
}
