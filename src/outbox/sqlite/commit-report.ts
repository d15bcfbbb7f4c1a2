/** A commit that was tried, for metrics. */
export interface CommitReport {
  /** How long it took. */
  commit_ms: number;
  /** Appends that shared it. */
  batch_size: number;
  /** The event types of the records that it added. */
  enqueued: string[];
  /** Failed and expired records that it removed before their time, to make room. */
  dropped: number;
  /** Why it did not reach the disk, or null. */
  trouble: string | null;
}
