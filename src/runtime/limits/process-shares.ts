import { totalmem } from 'node:os';
import { readKernelSetting } from '../../base/linux/procfs.ts';

/** Processes and threads of one sandbox, its daemon's included: the default of Podman. */
const SANDBOX_MAX = 2_048;
/** What a daemon and a small program need, whatever the share. */
const SANDBOX_MIN = 64;
/** The part of the machine's process numbers that all sandboxes may have; the rest is its own, and the manager's. */
const OF_MACHINE = 0.75;
const MIB = 1024 * 1024;

/**
 * How many processes and threads sandboxes may have: the share of what the machine has that their memory is of the
 * node's. As all memory together is never more than the node's, neither are they.
 */
export class ProcessShares {
  /** Of all sandboxes; null where the machine does not say how many it has. */
  readonly all: number | null;
  readonly #node_memory_mib: number;

  /** `node_memory_mib`: `--node-memory`, or null for the machine's. */
  constructor(node_memory_mib: number | null, of_machine = machineProcesses()) {
    this.all = of_machine === null ? null : Math.floor(of_machine * OF_MACHINE);
    this.#node_memory_mib = node_memory_mib ?? totalmem() / MIB;
  }

  /** Of a sandbox with this memory, in MiB. */
  of(memory_mib: number): number {
    if (this.all === null) return SANDBOX_MAX;
    const share = Math.floor((this.all * memory_mib) / this.#node_memory_mib);
    return Math.max(SANDBOX_MIN, Math.min(SANDBOX_MAX, share));
  }
}

/** The processes and threads that there can be on this machine; null if it does not say. */
function machineProcesses(): number | null {
  const settings = [readKernelSetting('kernel/pid_max'), readKernelSetting('kernel/threads-max')];
  const known = settings.filter((text) => text !== '').map(Number);
  return known.length === 0 ? null : Math.min(...known);
}
