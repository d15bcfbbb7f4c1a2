/** A sandbox's traffic in one direction since its namespace was made. Source: contract section 7, "Network". */
export interface TrafficUsage {
  /** Bytes that passed, as IP packet lengths counted by the kernel. They are charged and reported in usage windows. */
  passed_bytes: number;
  passed_packets: number;
  /** Datagrams dropped for lack of tokens. */
  dropped_bytes: number;
  dropped_packets: number;
  /** Time during which at least one packet was waiting for tokens. */
  waited_ms: number;
  /** Bytes that passed without tokens because the authority could not be reached and quotas fail open. */
  unadmitted_bytes: number;
}
