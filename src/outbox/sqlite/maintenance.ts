import type { Clock } from '../../base/clock.ts';
import {
  RETAIN_DELIVERED_MS,
  RETAIN_DELIVERED_RECORDS,
  RETAIN_DELIVERED_SHARE,
  RETAIN_FAILED_MS,
} from '../../contract/defaults.ts';
import type { OpenOutbox } from './open-outbox.ts';
import type { Keep } from './rows/finished-records.ts';
import type { OutboxLimits } from './rows/outbox-state.ts';

/** Rows removed in one transaction, so that publishes wait only shortly. */
const PRUNE_ROWS = 500;
/** Pages given back at a time. */
const VACUUM_PAGES = 500;
/** What giving them back adds to the log, about. */
const VACUUM_LOG_BYTES = 1024 * 1024;
/** Free pages that are left while the outbox is busy, up to a share of all: moving pages is expensive. */
const SPARE_PAGES = 2_048;
const SPARE_SHARE = 0.25;

/**
 * For this long after records were added or delivered, free pages are left: the next ones use them, and of a backlog that
 * drains, pages that are moved now are free themselves in a moment.
 */
const BUSY_MS = 5_000;

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

/**
 * Removes records past their retention from an outbox and gives their space back. Source: contract section 3,
 * Retention.
 */
export class Maintenance {
  readonly #outbox: OpenOutbox;
  readonly #rules: Keep[];
  readonly #clock: Clock;
  /** When records were last added or delivered. */
  #busy_ms = Number.NEGATIVE_INFINITY;

  constructor(outbox: OpenOutbox, limits: OutboxLimits, clock: Clock) {
    this.#outbox = outbox;
    this.#rules = retention(limits);
    this.#clock = clock;
  }

  /** Notes that records were added or delivered: free space is left for now. */
  noteBusy(): void {
    this.#busy_ms = this.#clock.monotonicMs();
  }

  /** Whether `prune` has something to remove or to give back. */
  isDue(): boolean {
    return this.#isRemovalDue() || this.#surplusPages() > 0;
  }

  /** Removes some of what is due and gives some of its space back; `more` if there is more to do. */
  prune(): { more: boolean } {
    const removed = this.#isRemovalDue() ? this.#outbox.write(() => this.#remove(), PRUNE_ROWS) : 0;
    const surplus_pages = this.#surplusPages();
    if (surplus_pages > 0) {
      this.#outbox.files.db.exec(`PRAGMA incremental_vacuum(${Math.min(surplus_pages, VACUUM_PAGES)})`);
      this.#outbox.log.noteBytes(VACUUM_LOG_BYTES);
    }
    const is_rest_due = removed > 0 && this.#isRemovalDue();
    const more = is_rest_due || surplus_pages > VACUUM_PAGES;
    // The file becomes shorter when the log is written back.
    if (surplus_pages > 0 && !more) this.#outbox.log.checkpoint('PASSIVE');
    return { more };
  }

  #isRemovalDue(): boolean {
    return this.#prunable().length > 0 || this.#outbox.store.finished.hasPrunableForeign(KEEP_FOREIGN);
  }

  #prunable(): Keep[] {
    return this.#rules.filter((rule) => this.#outbox.store.finished.hasPrunable(rule));
  }

  #remove(): number {
    const { finished } = this.#outbox.store;
    const is_foreign_due = finished.hasPrunableForeign(KEEP_FOREIGN);
    let removed = 0;
    for (const rule of this.#prunable()) removed += finished.prune(rule, PRUNE_ROWS);
    if (is_foreign_due) removed += finished.pruneForeign(KEEP_FOREIGN, PRUNE_ROWS);
    return removed;
  }

  /** Free pages that no record will need soon. */
  #surplusPages(): number {
    const { db } = this.#outbox.files;
    const pages = (name: string) => db.pragma(name, { simple: true }) as number;
    const is_busy = this.#clock.monotonicMs() - this.#busy_ms < BUSY_MS;
    const spare = is_busy ? Math.max(SPARE_PAGES, Math.ceil(pages('page_count') * SPARE_SHARE)) : 0;
    return Math.max(0, pages('freelist_count') - spare);
  }
}
