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
}

/** Processes and threads, a daemon's included. */
export function processShare(node_memory_mib: number | null, of_machine = machineProcesses()): MachineShare {
  const all = of_machine === null ? null : Math.floor(of_machine * PROCESSES_PART);
  return new MachineShare(all, node_memory_mib, PROCESSES);
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
