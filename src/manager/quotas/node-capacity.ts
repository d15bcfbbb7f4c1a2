import { readKernelSetting } from '../../base/linux/procfs.ts';
import { ApiError } from '../../contract/errors.ts';
import { DISK_DEFAULT_MIB } from '../../contract/sandboxes.ts';
import type { SandboxNode } from '../../runtime/runtime.ts';
import type { NodeBudget } from '../config/config.ts';
import { sizeText } from '../config/quantity.ts';
import type { Transaction } from '../database/database.ts';
import type { Lease } from '../sandboxes/ports.ts';
import { NOTHING_TAKEN, type NodeUse, type QuotaStore, UNBOUNDED_DISK_MIB } from './quota-store.ts';

const MIB = 1024 * 1024;
/** The smallest default of a sandbox's disk. */
const DISK_MIN_MIB = 128;
/** As many sandboxes may be paused as run: their disk stays taken. */
const DISK_SHARE = 0.5;
/** Without a budget of memory there is no share of it. */
const DISK_SHARES = 10;
/** With less of the disk free the node takes no sandbox, whatever its budget. */
const DISK_FREE_MIN_MIB = 64;
/** Process ids reserved for a sandbox, if the machine reports how many there are. */
const SANDBOX_PIDS = 64;

/** A budget with every part set; null is unlimited. */
type Budget = { readonly [Part in keyof NodeBudget]: number | null };

/** Admits sandboxes to the node within its budget of memory, CPU, number and disk. Source: contract section 7, `--node-…`, and "Node capacity". */
export class NodeCapacity {
  readonly #budget: Budget;
  readonly #node: SandboxNode | null;
  readonly #store: QuotaStore;
  /** What is on the node that no row knows. */
  readonly #unrecorded: () => NodeUse;

  /** Takes limits that are not `configured` from the node. Without one, only configured limits hold. */
  static open(
    configured: NodeBudget,
    node: SandboxNode | null,
    store: QuotaStore,
    unrecorded: () => NodeUse = () => NOTHING_TAKEN,
  ): NodeCapacity {
    if (node === null) return new NodeCapacity(configured, null, store, unrecorded);
    const machine = machineBudget(node);
    const { memory_mib, cpu_millis, sandboxes, disk_mib } = configured;
    const budget = {
      memory_mib: memory_mib ?? machine.memory_mib,
      cpu_millis: cpu_millis ?? machine.cpu_millis,
      sandboxes: sandboxes ?? machine.sandboxes,
      disk_mib: disk_mib ?? machine.disk_mib,
    };
    return new NodeCapacity(budget, node, store, unrecorded);
  }

  private constructor(
    budget: Budget,
    node: SandboxNode | null,
    store: QuotaStore,
    unrecorded: () => NodeUse,
  ) {
    this.#unrecorded = unrecorded;
    this.#budget = budget;
    this.#node = node;
    this.#store = store;
  }

  /**
   * The bound on the disk of a sandbox whose claim names none, in MiB: the share of half of the node's disk that its
   * memory is of the node's, from 128 MiB to 10 GiB.
   */
  defaultDiskMib(memory_mib: number): number {
    const { memory_mib: memory, disk_mib: disk } = this.#budget;
    if (disk === null) return DISK_DEFAULT_MIB;
    const share = memory === null ? 1 / DISK_SHARES : (DISK_SHARE * memory_mib) / memory;
    return Math.max(DISK_MIN_MIB, Math.min(DISK_DEFAULT_MIB, Math.floor(disk * share)));
  }

  /** Throws `capacity_exhausted` if the node cannot hold this lease in addition to all others. */
  async checkCapacity(tx: Transaction, lease: Lease): Promise<void> {
    const { memory_mib, cpu_millis } = lease;
    await this.#demand(tx, lease, { memory_mib, cpu_millis, sandboxes: 1, disk_mib: diskOf(lease) });
  }

  /** The same for a paused sandbox, which takes memory and disk alone. */
  async checkPaused(tx: Transaction, lease: Lease): Promise<void> {
    await this.#demand(tx, lease, { memory_mib: lease.memory_mib, disk_mib: diskOf(lease) });
  }

  async #demand(
    tx: Transaction,
    { sandbox_id }: Lease,
    demand: Partial<Record<keyof NodeBudget, number>>,
  ): Promise<void> {
    if (Object.values(this.#budget).every((part) => part === null)) return;
    await this.#store.lockNode(tx);
    const use = sumOf(await this.#store.nodeUse(tx, sandbox_id), this.#unrecorded());
    const taken = { ...use, sandboxes: use.active };
    for (const part of ['memory_mib', 'cpu_millis', 'sandboxes', 'disk_mib'] as const) {
      const limit = this.#budget[part];
      const asked = demand[part];
      if (limit === null || asked === undefined || taken[part] + asked <= limit) continue;
      throw exhausted(part, { asked, left: Math.max(0, limit - taken[part]) });
    }
    if (this.#node === null) return;
    const free_mib = Math.floor(this.#node.freeDiskBytes() / MIB);
    if (free_mib < DISK_FREE_MIN_MIB)
      throw exhausted('disk_mib', { asked: DISK_FREE_MIN_MIB, left: free_mib });
  }
}

function sumOf(one: NodeUse, other: NodeUse): NodeUse {
  const keys = Object.keys(one) as (keyof NodeUse)[];
  return Object.fromEntries(keys.map((key) => [key, one[key] + other[key]])) as unknown as NodeUse;
}

function diskOf({ disk_mib }: Lease): number {
  return disk_mib ?? UNBOUNDED_DISK_MIB;
}

/** What a claim calls each part of the budget, and how it writes an amount; null: nothing asks for less of it. */
const PARTS = {
  memory_mib: { resource: 'memory', written: sizeText },
  cpu_millis: { resource: 'cpu', written: (millis: number) => String(millis / 1000) },
  sandboxes: { resource: 'sandboxes', written: null },
  disk_mib: { resource: 'disk', written: sizeText },
};

/** What the node has left of it, in the unit of the part. */
function exhausted(part: keyof NodeBudget, { asked, left }: { asked: number; left: number }): ApiError {
  const { resource, written } = PARTS[part];
  const more =
    written === null
      ? ''
      : `: ${written(asked)} are needed, ${written(left)} are free. A smaller resources.${resource} asks for less`;
  const text = `The node does not have enough ${resource} left${more}.`;
  const amounts = written === null ? {} : { requested: written(asked), available: written(left) };
  return new ApiError('capacity_exhausted', text, { resource, ...amounts });
}

function machineBudget(node: SandboxNode): Budget {
  const { memory_mib, cpu_millis, disk_bytes } = node.resources();
  const pids = readKernelSetting('kernel/pid_max');
  const sandboxes = pids === '' ? null : Math.floor(Number(pids) / SANDBOX_PIDS);
  return { memory_mib, cpu_millis, sandboxes, disk_mib: Math.floor(disk_bytes / MIB) };
}
