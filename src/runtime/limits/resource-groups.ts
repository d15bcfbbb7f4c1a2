import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { type Hierarchy, hierarchyOf, unifiedMountPoint } from '../../base/linux/cgroup.ts';
import { systemErrorWords } from '../../base/linux/errno.ts';
import { SANDBOX_SIZE_MIN_MIB } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import { makeParentGroup, removeGroup } from './control-group.ts';
import { FrozenGroups } from './frozen-groups.ts';
import { HeldMemory } from './held-memory.ts';
import {
  type MachineShare,
  PAUSED_PROCESSES,
  processShortage,
  raiseOpenFiles,
  raiseProcessNumbers,
  socketShare,
  terminalShare,
} from './machine-share.ts';

/** Limits of one sandbox: MiB, and thousandths of a core that it has whatever others do. */
interface ResourceLimits {
  memory_mib: number;
  cpu_millis: number;
}

/** The controllers that hold a sandbox to its limits. */
export const CONTROLLERS = ['memory', 'cpu', 'pids'] as const;
type Controller = (typeof CONTROLLERS)[number];

const MIB = 1024 * 1024;
const CPU_PERIOD_US = 100_000;
/** What a smaller lease of cores may use while nobody else wants them: what is leased is guaranteed by weight. */
const CPU_CEILING_MIN_MILLIS = 1_000;
/** The weight of a core that is leased, and the least that the kernel takes: version 2; version 1. */
const CPU_WEIGHTS = { 1: { of_core: 1_024, least: 2 }, 2: { of_core: 100, least: 1 } } as const;
/** The most that version 2 takes. */
const CPU_WEIGHT_MAX = 10_000;

/** In version 1 the memory of sockets is apart, and without a limit of its own counted nowhere. */
const SOCKET_LIMIT = 'memory.kmem.tcp.limit_in_bytes';

const PARENT = 'sandbox-manager';

const NO_DISK_WEIGHT = 'the bandwidth of the disk is not divided: one sandbox may slow it down for all';

const NAMES: Record<Controller, string> = {
  memory: 'the memory of sandboxes',
  cpu: 'the CPU time of sandboxes',
  pids: 'the number of processes of a sandbox',
};

/** Where groups of sandboxes are made for a controller. */
interface GroupFolder extends Hierarchy {
  controller: Controller;
  folder: string;
}

/** What sandboxes have of the machine's tables. */
interface Shares {
  processes: MachineShare;
  terminals: MachineShare;
  sockets: MachineShare;
  open_files: string | null;
}

/** How groups are made; what a test sets otherwise than the machine has it. */
export interface ResourceGroupOptions {
  /** `--node-memory` in MiB; null: the machine's. */
  node_memory_mib?: number | null;
  /** Processes and threads of sandboxes. */
  processes?: MachineShare;
  /** The hierarchy that has a controller, or null. */
  hierarchy?: (controller: string) => Hierarchy | null;
  /** The name of the group that the sandboxes' groups are in. */
  parent?: string;
}

/**
 * Holds sandboxes to their memory, CPU time and number of processes with control groups of each, in whichever hierarchy
 * (version 1 or 2) has the controller. What this program cannot set up is a limitation, and its limits are only recorded.
 */
export class ResourceGroups {
  readonly #folders: GroupFolder[];
  /** Why a controller cannot be used. */
  readonly #missing: ReadonlyMap<Controller, string>;
  readonly #processes: MachineShare;
  readonly #terminals: MachineShare;
  readonly #sockets: MachineShare;
  /** Why the machine's open files may not suffice. */
  readonly #open_files: string | null;

  /** Freezes the processes of paused sandboxes. */
  readonly frozen: FrozenGroups;

  readonly #held: HeldMemory;

  private constructor(
    folders: GroupFolder[],
    missing: ReadonlyMap<Controller, string>,
    { processes, terminals, sockets, open_files }: Shares,
    frozen: FrozenGroups,
  ) {
    this.frozen = frozen;
    this.#held = new HeldMemory(folders.find(({ controller }) => controller === 'memory') ?? null);
    this.#folders = folders;
    this.#missing = missing;
    this.#processes = processes;
    this.#terminals = terminals;
    this.#sockets = sockets;
    this.#open_files = open_files;
  }

  /** Prepares the hierarchies. Never throws. */
  static open({
    node_memory_mib = null,
    processes = raiseProcessNumbers(node_memory_mib, SANDBOX_SIZE_MIN_MIB),
    hierarchy = hierarchyOf,
    parent = PARENT,
  }: ResourceGroupOptions = {}): ResourceGroups {
    const folders: GroupFolder[] = [];
    const missing = new Map<Controller, string>();
    for (const controller of CONTROLLERS) {
      try {
        folders.push(prepared(controller, hierarchy(controller), parent, processes));
      } catch (error) {
        missing.set(controller, whyMissing(error as NodeJS.ErrnoException));
      }
    }
    const shares = {
      processes,
      terminals: terminalShare(node_memory_mib),
      sockets: socketShare(node_memory_mib),
      open_files: raiseOpenFiles(node_memory_mib),
    };
    return new ResourceGroups(folders, missing, shares, new FrozenGroups(freezingFolder(parent)));
  }

  /** What is not limited by control groups, a phrase for each. `has_users`: each sandbox has a user of its own. */
  limitations(has_users: boolean): string[] {
    const unlimited = [...this.#missing].map(([controller, why]) =>
      controller === 'pids' && has_users
        ? `${NAMES.pids} is limited by its user alone: ${why}`
        : `${NAMES[controller]} is not limited: one may take all that this machine has (${why})`,
    );
    return [...unlimited, this.frozen.limitation()].filter((phrase) => phrase !== null);
  }

  /** What is not divided, or too little for all sandboxes of this memory that the node holds, a phrase for each. */
  shortages(memory_mib: number): string[] {
    const shortages = [processShortage(this.#processes, memory_mib), this.#open_files, NO_DISK_WEIGHT];
    return shortages.filter((phrase) => phrase !== null);
  }

  /** How many processes the user of a sandbox with this memory may have where no control group limits them; else null. */
  userProcessesMax(memory_mib: number): number | null {
    return this.#missing.has('pids') ? this.#processes.of(memory_mib) : null;
  }

  /** How many terminals a sandbox with this memory may have, where it has its own file system of them. */
  terminalsMax(memory_mib: number): number {
    return this.#terminals.of(memory_mib);
  }

  /**
   * Creates the groups of a sandbox, with its limit of processes alone, and returns the files that a process writes its pid to
   * in order to join them.
   */
  make(sandbox_id: string, memory_mib: number): string[] {
    for (const { controller, folder } of this.#folders) {
      const group = join(folder, sandbox_id);
      mkdirSync(group, { recursive: true });
      if (controller === 'pids') set(join(group, 'pids.max'), String(this.#processes.of(memory_mib)));
    }
    return this.#groups(sandbox_id).map((group) => join(group, 'cgroup.procs'));
  }

  /**
   * Sets the limits of a sandbox; they apply at once. One that was made without groups stays without. Throws
   * `conflict`, with nothing changed, if the kernel cannot take away memory that is in use.
   */
  limit(sandbox_id: string, limits: ResourceLimits): void {
    for (const { controller, version, folder } of this.#folders) {
      const group = join(folder, sandbox_id);
      if (!existsSync(group)) continue;
      if (controller === 'memory' && version === 1) this.#limitSockets(group, limits.memory_mib);
      if (controller === 'pids') set(join(group, 'pids.max'), String(this.#processes.of(limits.memory_mib)));
      else
        for (const [file, content] of limitFiles(controller, version, limits))
          set(join(group, file), content);
      if (controller === 'memory') keepFromSwap(group, version);
    }
  }

  #limitSockets(group: string, memory_mib: number): void {
    const file = join(group, SOCKET_LIMIT);
    if (existsSync(file)) set(file, String(this.#sockets.of(memory_mib)));
  }

  /**
   * Bounds a paused sandbox that leases `memory_mib` to what it holds, until `limit`, and gives the memory in MiB that is
   * charged for it, also for its processes; null: that is all of its lease. See `HeldMemory.bound`.
   */
  async hold(sandbox_id: string, memory_mib: number, clock: Clock): Promise<number | null> {
    const held_mib = await this.#held.bound(sandbox_id, memory_mib, clock);
    if (held_mib === null) return null;
    const processes = this.#holdProcesses(sandbox_id, memory_mib);
    // Their shares of all numbers are by memory, and a paused sandbox keeps those that it has.
    return Math.min(memory_mib, Math.max(held_mib, this.#processes.memoryOf(processes)));
  }

  /** Gives how many it has; more than its daemon needs it does not get. */
  #holdProcesses(sandbox_id: string, memory_mib: number): number {
    const most = this.#processes.of(memory_mib);
    const folder = this.#folders.find(({ controller }) => controller === 'pids')?.folder;
    if (folder === undefined) return most;
    try {
      const group = join(folder, sandbox_id);
      const count = Number(readFileSync(join(group, 'pids.current'), 'utf8'));
      writeFileSync(join(group, 'pids.max'), String(Math.min(most, count + PAUSED_PROCESSES)));
      return count;
    } catch {
      return most;
    }
  }

  /**
   * Kills what is still in the groups of a sandbox and removes them: a process is in its group until the kernel is done
   * with it. Idempotent; throws if one is not empty within 10 s.
   */
  async remove(sandbox_id: string, clock: Clock): Promise<void> {
    await this.frozen.remove(sandbox_id, clock);
    for (const group of this.#groups(sandbox_id)) await removeGroup(group, clock, () => killAll(group));
  }

  /** Controllers of one hierarchy share a group. */
  #groups(sandbox_id: string): string[] {
    return [...new Set(this.#folders.map(({ folder }) => join(folder, sandbox_id)))];
  }
}

function whyMissing({ code, path, message }: NodeJS.ErrnoException): string {
  const words = systemErrorWords(code);
  if (words === null) return message;
  return `control groups cannot be made: ${words}, ${path}; run the manager as root, or in a control group that is delegated to it`;
}

/** Where groups can be frozen; null if this program must not make any there. */
function freezingFolder(parent: string): string | null {
  const mount = unifiedMountPoint();
  const folder = mount && join(mount, parent);
  try {
    if (folder !== null) makeParentGroup(folder);
    return folder;
  } catch {
    return null;
  }
}

function prepared(
  controller: Controller,
  hierarchy: Hierarchy | null,
  parent: string,
  { all }: MachineShare,
): GroupFolder {
  if (hierarchy === null) throw new Error(`no control groups with ${controller} are mounted`);
  const { version, mount } = hierarchy;
  const folder = join(mount, parent);
  if (version === 2) writeFileSync(join(mount, 'cgroup.subtree_control'), `+${controller}`);
  makeParentGroup(folder);
  if (version === 2) writeFileSync(join(folder, 'cgroup.subtree_control'), `+${controller}`);
  // The last wall, where a paused sandbox still has its processes.
  if (controller === 'pids' && all !== null) writeFileSync(join(folder, 'pids.max'), String(all));
  return { controller, version, mount, folder };
}

/** Version 1 refuses a limit of memory below what is in use and cannot be reclaimed. */
function set(file: string, content: string): void {
  try {
    writeFileSync(file, content);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
    throw new ApiError('conflict', 'The sandbox uses more memory than that.');
  }
}

/** A sandbox that runs leases memory, and no part of the machine's swap. A kernel without swap has no such file. */
function keepFromSwap(group: string, version: Hierarchy['version']): void {
  const file = join(group, version === 1 ? 'memory.swappiness' : 'memory.swap.max');
  if (existsSync(file)) writeFileSync(file, '0');
}

/** Kills the processes in a group. */
function killAll(group: string): void {
  for (const pid of pidsIn(group)) {
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Nobody is in a group that somebody else has removed meanwhile. */
function pidsIn(group: string): string[] {
  try {
    return readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ENODEV'].includes(code)) return [];
    throw error;
  }
}

/**
 * The files of a group, each with what is written to it, in order, so that a sandbox's limits hold. Source: cgroups(7);
 * the kernel's cgroup-v1 and cgroup-v2 documents.
 */
function limitFiles(
  controller: Exclude<Controller, 'pids'>,
  version: Hierarchy['version'],
  { memory_mib, cpu_millis }: ResourceLimits,
): [file: string, content: string][] {
  if (controller === 'memory') {
    return [[version === 1 ? 'memory.limit_in_bytes' : 'memory.max', String(memory_mib * MIB)]];
  }
  const { of_core, least } = CPU_WEIGHTS[version];
  const weight = Math.max(least, Math.min(CPU_WEIGHT_MAX, Math.round((cpu_millis * of_core) / 1000)));
  const quota_us = Math.round((Math.max(CPU_CEILING_MIN_MILLIS, cpu_millis) * CPU_PERIOD_US) / 1000);
  if (version === 2)
    return [
      ['cpu.weight', String(weight)],
      ['cpu.max', `${quota_us} ${CPU_PERIOD_US}`],
    ];
  return [
    ['cpu.shares', String(weight)],
    ['cpu.cfs_period_us', String(CPU_PERIOD_US)],
    ['cpu.cfs_quota_us', String(quota_us)],
  ];
}
