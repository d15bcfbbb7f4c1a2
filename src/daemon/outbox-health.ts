import type { Clock, Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Mended } from '../outbox/sqlite/messages.ts';
import type { Adoption } from '../outbox/store.ts';
import type { Metrics } from './metrics.ts';

/** The interval between probes of a disk in trouble. */
const PROBE_MS = 1_000;

/**
 * Tracks write trouble of the outbox and records lost from it. Reports both in the log when they occur, in the metrics,
 * and through readiness. Source: contract section 3, Disk trouble.
 */
export class OutboxHealth {
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #probe: () => void;
  #trouble: string | null = null;
  #timer: Timer | null = null;
  readonly #damages: string[] = [];
  #is_dropping = false;

  /** `probe` makes a commit whose report is observed: it detects the end of trouble when nobody else writes. */
  constructor(log: Log, metrics: Metrics, clock: Clock, probe: () => void) {
    this.#log = log;
    this.#metrics = metrics;
    this.#clock = clock;
    this.#probe = probe;
  }

  /** Why the outbox cannot be written; null if it can. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** Damage and losses found since the start, one line each. */
  get damages(): readonly string[] {
    return this.#damages;
  }

  /** Notes the result of a commit or of opening the outbox: the reason of a failure, or null. */
  observe(trouble: string | null): void {
    if (trouble !== this.#trouble) {
      if (trouble) this.#log.error({ reason: trouble }, 'the outbox cannot be written');
      else this.#log.info('the outbox can be written again');
    }
    this.#trouble = trouble;
    if (trouble === null) this.#stopProbing();
    else this.#timer ??= this.#probeLater();
  }

  #probeLater(): Timer {
    return this.#clock.after(PROBE_MS, () => {
      this.#timer = this.#probeLater();
      this.#probe();
    });
  }

  #stopProbing(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** Reports what was found when the outbox was opened. */
  reportAdoption({
    set_aside,
    missing_records,
    lost_records,
    foreign_records,
    foreign_pending,
  }: Adoption): void {
    if (set_aside || missing_records > 0) {
      this.#log.error({ set_aside, missing_records, lost_records }, 'the outbox was damaged');
      if (set_aside) this.#damages.push(`a damaged outbox was set aside at ${set_aside}`);
      if (missing_records > 0) this.#damages.push(missing(missing_records, lost_records));
    }
    const fields = { foreign_records, foreign_pending };
    if (foreign_pending > 0)
      this.#log.warn(
        fields,
        'the outbox holds records of another sandbox, some undelivered: they will not be sent',
      );
    else if (foreign_records > 0)
      this.#log.info(fields, 'the outbox holds records of another sandbox: they will not be sent');
    this.#metrics.countLost(lost_records);
  }

  /** Reports, once, that failed and expired records are removed before their time; the metrics count them. */
  reportDropped(): void {
    if (this.#is_dropping) return;
    this.#is_dropping = true;
    this.#log.warn(
      'the outbox is full: failed and expired records make room for new ones, oldest first; they cannot be replayed',
    );
  }

  /** Reports damage that was found and repaired while the daemon ran. */
  reportRepair({ how, lost_records, set_aside }: Mended): void {
    if (how === 'forged') this.#metrics.countForged(lost_records);
    else this.#metrics.countLost(lost_records);
    switch (how) {
      case 'restored':
        this.#log.error(
          "the outbox's files were removed or replaced: they have been rewritten with every record",
        );
        this.#damages.push("the outbox's files were removed or replaced, and have been rewritten");
        return;
      case 'replaced':
        this.#log.error({ set_aside, lost_records }, 'the outbox is damaged and was set aside');
        this.#damages.push(`a damaged outbox was set aside at ${set_aside}`);
        if (lost_records > 0) this.#damages.push(missing(lost_records, lost_records));
        return;
      case 'failed':
        this.#log.error({ lost_records }, 'the disk changed records: they will not be sent');
        this.#damages.push(
          `${counted(lost_records, 'acknowledged record')} damaged on disk and will not be sent`,
        );
        return;
      case 'forged':
        this.#log.error({ records: lost_records }, 'records are not authentic: they will not be sent');
        this.#damages.push(`${counted(lost_records, 'record')} not authentic and will not be sent`);
    }
  }
}

function missing(missing_records: number, lost_records: number): string {
  const delivered = missing_records - lost_records;
  const of_them = delivered > 0 ? `, ${delivered} of which had been delivered` : '';
  return `${counted(missing_records, 'acknowledged record')} missing${of_them}`;
}

/** Such as "1 record is" or "2 records are". */
function counted(count: number, what: string): string {
  return count === 1 ? `1 ${what} is` : `${count} ${what}s are`;
}
