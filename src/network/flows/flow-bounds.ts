import {
  FLOWS_NODE_BURST_SHARE,
  FLOWS_NODE_RATE_SHARE,
  FLOWS_SANDBOX_MAX,
  FLOWS_SANDBOX_RATE,
  FLOWS_TABLE_SHARE,
  FLOWS_TEAM_BURST,
  FLOWS_TEAM_CALM_BURST,
  FLOWS_TEAM_CALM_RATE,
  FLOWS_TEAM_RATE,
} from '../../contract/defaults.ts';

/** The number of flows that may begin: in a second over time, and at once. */
export interface FlowRate {
  per_second: number;
  burst: number;
}

/** The bounds of the flows that the node tracks for sandboxes. Source: contract section 7, "Network". */
export interface FlowBounds {
  /** Flows that one sandbox may have open. */
  sandbox_held: number;
  sandbox_rate: FlowRate;
  team_rate: FlowRate;
  /** The part of a team's rate that is served whatever the other teams begin. */
  team_calm: FlowRate;
  node_rate: FlowRate;
  /** Entries that all sandboxes together may have in the node's table. */
  sandboxes_held: number;
}

/** The bounds on a node whose table has this many entries. */
export function flowBounds(table_max: number): FlowBounds {
  const partOf = (share: number) => Math.max(1, Math.floor(table_max * share));
  return {
    sandbox_held: FLOWS_SANDBOX_MAX,
    sandbox_rate: { per_second: FLOWS_SANDBOX_RATE, burst: FLOWS_SANDBOX_MAX },
    team_rate: { per_second: FLOWS_TEAM_RATE, burst: FLOWS_TEAM_BURST },
    team_calm: { per_second: FLOWS_TEAM_CALM_RATE, burst: FLOWS_TEAM_CALM_BURST },
    node_rate: { per_second: partOf(FLOWS_NODE_RATE_SHARE), burst: partOf(FLOWS_NODE_BURST_SHARE) },
    sandboxes_held: partOf(FLOWS_TABLE_SHARE),
  };
}
