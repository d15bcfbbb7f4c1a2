import type { Database } from 'better-sqlite3';
import {
  RETAIN_DELIVERED_MS,
  RETAIN_DELIVERED_RECORDS,
  RETAIN_DELIVERED_SHARE,
  RETAIN_FAILED_MS,
} from '../../contract/defaults.ts';
import type { FinishedRecords, Keep } from './rows/finished-records.ts';
import type { OutboxLimits } from './rows/outbox-state.ts';

/** Rows removed in one transaction, so that publishes wait only shortly. */
export const PRUNE_ROWS = 500;
/** Pages given back at a time. */
export const VACUUM_PAGES = 500;
/** What giving them back adds to the log, about. */
export const VACUUM_LOG_BYTES = 1024 * 1024;
/** Free pages that are left while the outbox grows, up to a share of all: moving pages is expensive. */
const SPARE_PAGES = 2_048;
const SPARE_SHARE = 0.25;

const KEEP_FOREIGN = { delivered_ms: RETAIN_DELIVERED_MS, all_ms: RETAIN_FAILED_MS };

/** How long, and how much at most, finished records are kept. Source: contract section 3, Retention. */
function retention({ max_bytes }: OutboxLimits): Keep[] {
  const unbounded = { keep_records: Number.POSITIVE_INFINITY, keep_bytes: Number.POSITIVE_INFINITY };
  return [
    {
      state: 'delivered',
      keep_ms: RETAIN_DELIVERED_MS,
      keep_records: RETAIN_DELIVERED_RECORDS,
      keep_bytes: max_bytes * RETAIN_DELIVERED_SHARE,
    },
    { state: 'failed', keep_ms: RETAIN_FAILED_MS, ...unbounded },
    { state: 'expired', keep_ms: RETAIN_FAILED_MS, ...unbounded },
  ];
}

/** What of an outbox is to be removed or given back to the file system. Source: contract section 3, Retention. */
export class Maintenance {
  readonly #db: Database;
  readonly #finished: FinishedRecords;
  readonly #limits: OutboxLimits;
  readonly #is_growing: boolean;

  /** `is_growing`: a record was added a moment ago. */
  constructor(db: Database, finished: FinishedRecords, limits: OutboxLimits, is_growing: boolean) {
    this.#db = db;
    this.#finished = finished;
    this.#limits = limits;
    this.#is_growing = is_growing;
  }

  /** Whether there is something to remove or to give back. */
  isDue(): boolean {
    return this.isRemovalDue() || this.surplusPages() > 0;
  }

  /** Whether records were kept long enough, or are too many. */
  isRemovalDue(): boolean {
    return this.#prunable().length > 0 || this.#finished.hasPrunableForeign(KEEP_FOREIGN);
  }

  #prunable(): Keep[] {
    return retention(this.#limits).filter((rule) => this.#finished.hasPrunable(rule));
  }

  /** Removes a part of those records; returns their number. Call it between `begin` and `commit` of the store. */
  remove(): number {
    const is_foreign_due = this.#finished.hasPrunableForeign(KEEP_FOREIGN);
    let removed = 0;
    for (const rule of this.#prunable()) removed += this.#finished.prune(rule, PRUNE_ROWS);
    if (is_foreign_due) removed += this.#finished.pruneForeign(KEEP_FOREIGN, PRUNE_ROWS);
    return removed;
  }

  /** Free pages that no record will need soon. */
  surplusPages(): number {
    const pages = (name: string) => this.#db.pragma(name, { simple: true }) as number;
    const spare = this.#is_growing ? Math.max(SPARE_PAGES, Math.ceil(pages('page_count') * SPARE_SHARE)) : 0;
    return Math.max(0, pages('freelist_count') - spare);
  }

  /** Gives up to `pages` free pages back, a part at a time. The file becomes shorter when the log is written back. */
  giveBack(pages: number): void {
    this.#db.exec(`PRAGMA incremental_vacuum(${Math.min(pages, VACUUM_PAGES)})`);
  }
}
