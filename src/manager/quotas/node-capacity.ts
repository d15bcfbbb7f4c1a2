import { DISK_DEFAULT_MIB, PAUSED_MEMORY_MIB } from '../../contract/defaults.ts';
import type { NodeLimits } from '../../contract/node.ts';
import type { SandboxNode } from '../../runtime/runtime.ts';
import type { ManagerConfig, NodeBudget } from '../config/config.ts';
import type { Transaction } from '../database/database.ts';
import type { Lease } from '../sandboxes/ports.ts';
import { capacityExhausted } from './node-refusal.ts';
import {
  NOTHING_TAKEN,
  type NodeUse,
  type QuotaStore,
  sumOf,
  type TakenBeside,
  UNBOUNDED_DISK_MIB,
} from './quota-store.ts';
import { leftOf, shareOf } from './team-share.ts';

const MIB = 1024 * 1024;
/** The smallest default of a sandbox's disk. */
const DISK_MIN_MIB = 128;
/** As many sandboxes may be paused as run: their disk stays taken. */
const DISK_SHARE = 0.5;
/** Without a budget of memory there is no share of it. */
const DISK_SHARES = 10;
/** With less of the disk free the node takes no sandbox, whatever its budget. */
const DISK_FREE_MIN_MIB = 64;

/** The parts of which teams have shares, with the least that a sandbox keeps of it: no share is less. */
const SHARED = { disk_mib: DISK_MIN_MIB, memory_mib: PAUSED_MEMORY_MIB } as const;

/** What is on the node and in no record: of a team, or with null of all. */
export type UnrecordedUse = (team_id: string | null) => NodeUse;

type Amounts = Partial<Record<keyof NodeBudget, number>>;

/** What is asked of the node. */
interface Asked {
  node: Amounts;
  /** Of what teams have shares of. */
  share: { disk_mib: number; memory_mib: number };
}

/**
 * Admits sandboxes to the node within its budget of memory, CPU, number and disk, and each team within its share of what
 * stays taken while sandboxes are paused. Source: contract section 7, `--node-…`, "Node capacity" and "Shares of teams".
 */
export class NodeCapacity {
  /** What all sandboxes may take. */
  readonly budget: NodeLimits;
  /** `--team-share`, in percent. */
  readonly team_share: number;
  /** What is on the node that no row knows. */
  readonly unrecorded: UnrecordedUse;
  readonly #node: SandboxNode | null;
  readonly #store: QuotaStore;

  /** Takes limits that are not `configured` from the node. Without one, only configured limits hold. */
  static open(
    { node: configured, team_share }: Pick<ManagerConfig, 'node' | 'team_share'>,
    node: SandboxNode | null,
    store: QuotaStore,
    unrecorded: UnrecordedUse = () => NOTHING_TAKEN,
  ): NodeCapacity {
    const machine = node === null ? configured : machineBudget(node);
    const budget = {
      memory_mib: configured.memory_mib ?? machine.memory_mib,
      cpu_millis: configured.cpu_millis ?? machine.cpu_millis,
      sandboxes: configured.sandboxes ?? machine.sandboxes,
      disk_mib: configured.disk_mib ?? machine.disk_mib,
    };
    return new NodeCapacity({ budget, team_share, unrecorded }, node, store);
  }

  private constructor(
    given: Pick<NodeCapacity, 'budget' | 'team_share' | 'unrecorded'>,
    node: SandboxNode | null,
    store: QuotaStore,
  ) {
    this.budget = given.budget;
    this.team_share = given.team_share;
    this.unrecorded = given.unrecorded;
    this.#node = node;
    this.#store = store;
  }

  /** What a team may keep of disk, or of memory for paused sandboxes, while another holds some; null: there is no budget. */
  shareOf(part: keyof typeof SHARED): number | null {
    const budget = this.budget[part];
    return budget === null ? null : shareOf(budget, this.team_share, SHARED[part]);
  }

  /**
   * The bound on the disk of a sandbox whose claim names none, in MiB: the share of half of the node's disk that its
   * memory is of the node's, from 128 MiB to 10 GiB, and never more than a team's share.
   */
  defaultDiskMib(memory_mib: number): number {
    const { memory_mib: memory, disk_mib: disk } = this.budget;
    if (disk === null) return DISK_DEFAULT_MIB;
    const part = memory === null ? 1 / DISK_SHARES : (DISK_SHARE * memory_mib) / memory;
    const most = Math.min(DISK_DEFAULT_MIB, this.shareOf('disk_mib') ?? DISK_DEFAULT_MIB);
    return Math.max(DISK_MIN_MIB, Math.min(most, Math.floor(disk * part)));
  }

  /**
   * Throws `capacity_exhausted` if the node cannot hold this lease in addition to all others. What is recorded already
   * keeps its disk, and no share takes it away. As a pause is never refused, a new sandbox is refused while its team's
   * paused ones keep more than the team may.
   */
  async checkCapacity(tx: Transaction, lease: Lease): Promise<void> {
    await this.#demand(tx, lease, ({ team, own }) => {
      const { memory_mib, cpu_millis } = lease;
      const is_over = team.paused_memory_mib > (this.shareOf('memory_mib') ?? team.paused_memory_mib);
      return {
        node: { memory_mib, cpu_millis, sandboxes: 1, disk_mib: diskOf(lease) },
        share:
          own === null ? { disk_mib: diskOf(lease), memory_mib: is_over ? memory_mib : 0 } : NOTHING_KEPT,
      };
    });
  }

  /** The same for a paused sandbox, which takes memory and disk alone. */
  async checkPaused(tx: Transaction, lease: Lease): Promise<void> {
    await this.#demand(tx, lease, ({ own }) => {
      const node = { memory_mib: lease.memory_mib, disk_mib: diskOf(lease) };
      if (own === null) return { node, share: node };
      const is_more = lease.memory_mib > own.paused_memory_mib;
      return { node, share: { disk_mib: 0, memory_mib: is_more ? lease.memory_mib : 0 } };
    });
  }

  async #demand(tx: Transaction, lease: Lease, askedOf: (taken: TakenBeside) => Asked): Promise<void> {
    if (Object.values(this.budget).every((part) => part === null)) return;
    await this.#store.lockNode(tx);
    const recorded = await this.#store.nodeUse(tx, lease);
    const taken: TakenBeside = {
      node: sumOf(recorded.node, this.unrecorded(null)),
      team: sumOf(recorded.team, this.unrecorded(lease.team_id)),
      own: recorded.own,
    };
    const asked = askedOf(taken);
    for (const part of ['memory_mib', 'cpu_millis', 'sandboxes', 'disk_mib'] as const) {
      this.#checkNode(part, asked.node[part], taken.node);
    }
    for (const part of ['memory_mib', 'disk_mib'] as const) this.#checkShare(part, asked.share[part], taken);
    if (this.#node === null) return;
    const free_mib = Math.floor(this.#node.freeDiskBytes() / MIB);
    if (free_mib >= DISK_FREE_MIN_MIB) return;
    throw capacityExhausted('disk_mib', { asked: DISK_FREE_MIN_MIB, left: free_mib, share: null });
  }

  #checkNode(part: keyof NodeBudget, asked: number | undefined, use: NodeUse): void {
    const limit = this.budget[part];
    const taken = part === 'sandboxes' ? use.active : use[part];
    if (limit === null || asked === undefined || taken + asked <= limit) return;
    throw capacityExhausted(part, { asked, left: Math.max(0, limit - taken), share: null });
  }

  #checkShare(part: keyof typeof SHARED, asked: number, { node, team }: TakenBeside): void {
    const [budget, share] = [this.budget[part], this.shareOf(part)];
    if (budget === null || share === null || asked === 0) return;
    const kept = part === 'memory_mib' ? team.paused_memory_mib : team.disk_mib;
    const amounts = { budget, share, held: team[part], kept, others: node[part] - team[part] };
    const left = leftOf(amounts);
    if (asked <= left.team) return;
    const least = Math.max(0, Math.min(left.node, left.team));
    throw capacityExhausted(part, { asked, left: least, share: this.team_share });
  }
}

const NOTHING_KEPT = { disk_mib: 0, memory_mib: 0 };

function diskOf({ disk_mib }: Lease): number {
  return disk_mib ?? UNBOUNDED_DISK_MIB;
}

function machineBudget(node: SandboxNode): NodeBudget {
  const { memory_mib, cpu_millis, disk_bytes, sandboxes } = node.resources();
  return { memory_mib, cpu_millis, sandboxes, disk_mib: Math.floor(disk_bytes / MIB) };
}
