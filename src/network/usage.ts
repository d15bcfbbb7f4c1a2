/** A sandbox's traffic in one direction since its namespace was made. Source: contract section 7, "Network". */
export interface TrafficUsage {
  /** IP packet lengths, as the kernel counted what passed: what is charged, and what usage windows hold. */
  passed_bytes: number;
  passed_packets: number;
  /** Datagrams that had no tokens. */
  dropped_bytes: number;
  dropped_packets: number;
  /** How long at least one packet waited for its tokens. */
  waited_ms: number;
  /** What passed without tokens, while the authority could not be reached and quotas fail open. */
  unadmitted_bytes: number;
}
