import { readFileSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { readKernelSetting } from '../../base/linux/procfs.ts';

const MIB = 1024 * 1024;
/** The part of the machine's process numbers that all sandboxes may have; the rest is its own, and the manager's. */
const PROCESSES_PART = 0.75;
/** A daemon, processes for files of two accounts, with 150 threads each, and programs; the default of Podman. */
const PROCESSES = { least: 512, most: 2_048 };
/** Buffers of a stream or two over a long way; of many over short ones. In bytes. */
const SOCKET_BYTES = { least: 8 * MIB, most: 256 * MIB };
/** The smallest there is, in bytes: where pages are larger, shares are smaller than they might be. */
const PAGE_BYTES = 4_096;
/** What a sandbox needs at least: there are no more of them than that allows, whatever each may have. */
const PROCESSES_NEEDED = 64;
/** Of a paused sandbox beside those that it has: its daemon starts processes for files of two accounts. */
export const PAUSED_PROCESSES = 320;
const OPEN_FILES = '/proc/sys/fs/file-max';
const PROCESS_NUMBERS = '/proc/sys/kernel/pid_max';
/** The kernel takes no more. */
const PROCESS_NUMBERS_MOST = 4_194_304;
/** What a file costs that is opened at least; 220 were measured. */
const OPEN_FILE_BYTES = 160;
/** Each may need some; nobody works at more. */
const TERMINALS = { least: 8, most: 256 };

/**
 * How much of something that the machine has once sandboxes may take: each the share of it that its memory is of the
 * node's. As all memory together is never more than the node's, neither are the shares.
 */
export class MachineShare {
  /** Of all sandboxes; null where the machine does not say how much it has. */
  readonly all: number | null;
  readonly #node_memory_mib: number;
  readonly #bounds: { least: number; most: number };

  /** `node_memory_mib`: `--node-memory`, or null for the machine's. */
  constructor(all: number | null, node_memory_mib: number | null, bounds: { least: number; most: number }) {
    this.all = all;
    this.#node_memory_mib = node_memory_mib ?? totalmem() / MIB;
    this.#bounds = bounds;
  }

  /** Of a sandbox with this memory, in MiB. */
  of(memory_mib: number): number {
    const { least, most } = this.#bounds;
    if (this.all === null) return most;
    return Math.max(least, Math.min(most, Math.floor((this.all * memory_mib) / this.#node_memory_mib)));
  }

  /** The memory whose share this many are, in MiB, upwards; 0 where the machine does not say how much it has. */
  memoryOf(count: number): number {
    return this.all === null ? 0 : Math.ceil((count * this.#node_memory_mib) / this.all);
  }

  /** How many are wanted for the least of each sandbox of this memory that the node holds; null: there are as many. */
  wantedFor(memory_mib: number): number | null {
    const wanted = Math.floor(this.#node_memory_mib / memory_mib) * this.#bounds.least;
    return this.all === null || wanted <= this.all ? null : wanted;
  }
}

/** Processes and threads, a daemon's included. */
export function processShare(node_memory_mib: number | null, of_machine = machineProcesses()): MachineShare {
  const all = of_machine === null ? null : Math.floor(of_machine * PROCESSES_PART);
  return new MachineShare(all, node_memory_mib, PROCESSES);
}

/** How many sandboxes the machine's process numbers are enough for; null where it does not say how many it has. */
export function sandboxesByProcesses({ all } = processShare(null)): number | null {
  return all === null ? null : Math.floor(all / PROCESSES_NEEDED);
}

/** Process numbers of the machine, of which its sandboxes have a part, so that as many of this memory as the node holds have the least each. */
function numbersFor(share: MachineShare, memory_mib: number): number | null {
  const wanted = share.wantedFor(memory_mib);
  return wanted === null ? null : Math.ceil(wanted / PROCESSES_PART);
}

/**
 * Has the machine number its processes as far as all sandboxes of this memory that the node holds need it, where this
 * program may, as systemd does it further. They are still bounded by `kernel.threads-max`. Gives the shares as they are then.
 * Source: proc_sys_kernel(5).
 */
export function raiseProcessNumbers(
  node_memory_mib: number | null,
  memory_mib: number,
  file = PROCESS_NUMBERS,
): MachineShare {
  const numbers = numbersFor(processShare(node_memory_mib), memory_mib);
  if (numbers !== null) raise(file, Math.min(numbers, PROCESS_NUMBERS_MOST));
  return processShare(node_memory_mib);
}

/** A phrase where sandboxes of this memory, as many as the node holds, have not the least of process numbers each; else null. */
export function processShortage(share: MachineShare, memory_mib: number): string | null {
  const numbers = numbersFor(share, memory_mib);
  if (numbers === null) return null;
  return `many sandboxes together may take all process numbers that are theirs: set kernel.pid_max and kernel.threads-max to ${numbers} at least`;
}

/**
 * Has the machine's table of open files be as large as all memory of the node can pay for: each file is charged to its
 * sandbox, so that memory is their only bound. Gives a phrase where this program must not change that. Source: proc_sys_fs(5).
 */
export function raiseOpenFiles(node_memory_mib: number | null, file = OPEN_FILES): string | null {
  const wanted = Math.ceil(((node_memory_mib ?? totalmem() / MIB) * MIB) / OPEN_FILE_BYTES);
  if (raise(file, wanted)) return null;
  return `one sandbox may take all open files that this machine has: set fs.file-max to ${wanted} at least`;
}

/** Raises a setting of the kernel that is lower; false where this program must not. */
function raise(file: string, wanted: number): boolean {
  try {
    if (Number(readFileSync(file, 'utf8')) < wanted) writeFileSync(file, String(wanted));
    return true;
  } catch {
    return false;
  }
}

function machineProcesses(): number | null {
  const known = [setting('kernel/pid_max'), setting('kernel/threads-max')].filter((each) => each !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/**
 * Bytes that sockets keep for a sandbox: all together leave TCP of the machine as much as it has before it presses
 * everybody's connections. UDP has more.
 */
export function socketShare(node_memory_mib: number | null): MachineShare {
  const pressing = Number(readKernelSetting('net/ipv4/tcp_mem').split(/\s+/)[1]);
  const all = Number.isNaN(pressing) ? null : pressing * PAGE_BYTES;
  return new MachineShare(all, node_memory_mib, SOCKET_BYTES);
}

/** Pseudo terminals, without those that the machine keeps for itself. */
export function terminalShare(node_memory_mib: number | null): MachineShare {
  const [most, kept] = [setting('kernel/pty/max'), setting('kernel/pty/reserve')];
  return new MachineShare(most === null ? null : most - (kept ?? 0), node_memory_mib, TERMINALS);
}

function setting(name: string): number | null {
  const text = readKernelSetting(name);
  return text === '' ? null : Number(text);
}
