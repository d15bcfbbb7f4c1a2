/** Shapes of the node's budget and its use. Contract section 7, "Node capacity". */

/** The node's budget. In it null is: not limited. */
export interface NodeLimits {
  /** In MiB. */
  memory_mib: number | null;
  /** Cores, in thousandths. */
  cpu_millis: number | null;
  /** Active sandboxes. */
  sandboxes: number | null;
  /** In MiB. */
  disk_mib: number | null;
}

/** What sandboxes hold. */
export interface NodeHeld {
  /** Memory of active sandboxes, and what paused ones hold, in MiB. */
  memory_mib: number;
  /** Cores of active sandboxes, in thousandths. */
  cpu_millis: number;
  /** Active sandboxes. */
  sandboxes: number;
  /** Disk of all sandboxes that are not gone, in MiB. */
  disk_mib: number;
  /** Paused sandboxes. */
  paused: number;
  /** The part of the memory that they hold, in MiB. */
  paused_memory_mib: number;
}

/** What `GET /api/v1/node` answers. */
export interface NodeView {
  budget: NodeLimits;
  /** What all sandboxes hold, unrecorded ones included. */
  use: NodeHeld;
  /** The part of `use` of sandboxes that are here and in no record. */
  unrecorded: NodeHeld;
  /** `--team-share`, in percent; 100 is off. */
  team_share: number;
  /** What one team may keep of disk, and of memory for paused sandboxes, while another holds some; null: not limited. */
  share: { disk_mib: number | null; paused_memory_mib: number | null };
  /** What teams hold, the largest disk first; without what is unrecorded. */
  teams: (NodeHeld & { team_id: string })[];
  has_more: boolean;
}
