import type { Generated } from 'kysely';

/** The tables of `manager/usage/`; see `Tables`. */

/** The memory that a sandbox leases now, and the time up to which it is part of closed windows. */
export interface LeaseTable {
  sandbox_id: string;
  team_id: string;
  memory_mib: number;
  started_ms: number;
  counted_until_ms: number;
  /** The last time at which it was known to run. */
  heartbeat_ms: number;
}

/** What was last seen of a sandbox's traffic, and how much of it is part of closed windows; kept as long as the sandbox's row. */
export interface NetworkPositionTable {
  sandbox_id: string;
  team_id: string;
  /** JSON: the `network_usage` last seen, and when. */
  usage: string;
  seen_ms: number;
  egress_counted: number;
  ingress_counted: number;
  /** Null while metering is off: what has passed by its start is in no window. */
  counted_until_ms: number | null;
}

/** Closed usage windows; rows are added and never changed. */
export interface UsageWindowTable {
  seq: Generated<number>;
  /** PostgreSQL: the transaction that wrote it; SQLite: 0. */
  xid: Generated<number>;
  window_id: string;
  team_id: string;
  region_id: string;
  cluster_id: string;
  window_type: string;
  subject_type: string;
  subject_id: string;
  sandbox_id: string;
  window_start_ms: number;
  window_end_ms: number;
  value: number;
  unit: string;
  recorded_at_ms: number;
}
