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
      if (set_aside) this.#damages.push(`a damaged outbox is set aside at ${set_aside}`);
      if (missing_records > 0) this.#damages.push(missing(missing_records, lost_records));
    }
    const fields = { foreign_records, foreign_pending };
    if (foreign_pending > 0)
      this.#log.warn(fields, "another sandbox's records are set aside, not all delivered");
    else if (foreign_records > 0) this.#log.info(fields, "another sandbox's records are set aside");
    this.#metrics.countLost(lost_records);
  }

  /** Reports damage that was found and repaired while the daemon ran. */
  reportRepair({ how, lost_records, set_aside }: Mended): void {
    if (how === 'forged') this.#metrics.countForged(lost_records);
    else this.#metrics.countLost(lost_records);
    switch (how) {
      case 'restored':
        this.#log.error(
          "the outbox's files were removed or replaced: they are written anew, with all records",
        );
        this.#damages.push("the outbox's files were removed or replaced, and are written anew");
        return;
      case 'replaced':
        this.#log.error({ set_aside, lost_records }, 'the outbox is damaged and is set aside');
        this.#damages.push(`a damaged outbox is set aside at ${set_aside}`);
        if (lost_records > 0) this.#damages.push(`${lost_records} acknowledged records are missing`);
        return;
      case 'failed':
        this.#log.error({ lost_records }, 'the disk changed records: they are not sent');
        this.#damages.push(`${lost_records} acknowledged records are damaged and not sent`);
        return;
      case 'forged':
        this.#log.error({ records: lost_records }, 'records are not authentic: they are not sent');
        this.#damages.push(`${lost_records} records are not authentic and not sent`);
    }
  }
}

function missing(missing_records: number, lost_records: number): string {
  const delivered = missing_records - lost_records;
  return `${missing_records} acknowledged records are missing${delivered > 0 ? `, ${delivered} of them delivered before` : ''}`;
}
