/** How a manager reads the life of a sandbox from its daemon. Contract section 4, GET `/sandbox/events`. */

/** The path of the records, below `/api/v1`. */
export const LIFECYCLE_PATH = '/sandbox/events';

/** Most records of an answer, which must stay below what the manager reads of one. */
export const LIFECYCLE_PAGE_RECORDS = 100;

/** A `sandbox.*` record as the daemon has stored it: everything that its `mac` authenticates, and what it is stored with. */
export interface LifecycleRecord {
  event_id: string;
  event_type: string;
  sandbox_id: string;
  sequence: number;
  /** JSON text. */
  headers: string;
  body: string;
  /** CRC-32 of headers and body. */
  checksum: number;
  /** Wall time of its commit, in ms. */
  created_at_ms: number;
  /** Lower-case hex. */
  mac: string;
}
