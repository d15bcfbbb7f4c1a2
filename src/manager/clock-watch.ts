import type { Log } from '../base/log.ts';
import { gauge, type Metric } from '../base/metrics.ts';
import type { Job } from '../base/schedule.ts';
import { CLOCK_OFF_MS } from '../contract/defaults.ts';
import type { DatabaseClock } from './database/database-clock-store.ts';

/** How often the database's time is measured: what a machine's own clock drifts meanwhile is far below a millisecond. */
const MEASURE_MS = 2_000;

/**
 * Keeps the manager's time in step with its database's, and tells where the clock of this machine, or a database whose clock
 * went back, is off by more than a second. Source: contract section 7, "Time".
 */
export class ClockWatch {
  readonly #clock: DatabaseClock;
  readonly #log: Log;
  #is_machine_off = false;
  #is_ahead = false;

  constructor(clock: DatabaseClock, log: Log) {
    this.#clock = clock;
    this.#log = log;
    this.#look();
  }

  /** The job that measures. */
  job(): Job {
    return {
      name: 'clock',
      run: async () => {
        await this.#clock.measure();
        this.#look();
        return MEASURE_MS;
      },
    };
  }

  /** The field of `/readyz`: how far this machine's clock is ahead of the manager's time, in seconds. */
  facts(): { clock_offset_seconds: number } {
    return { clock_offset_seconds: this.#offset_s() };
  }

  /** What is off, in words. */
  troubles(): string[] {
    const { machine_ahead_ms, ahead_ms } = this.#clock;
    return [
      ...(isOff(machine_ahead_ms)
        ? [`the clock of this machine is ${away(machine_ahead_ms)} the manager's time`]
        : []),
      ...(isOff(ahead_ms)
        ? [`the database's clock went back: this replica's time is ${away(ahead_ms)} it`]
        : []),
    ];
  }

  /** The metrics of time. */
  metrics(): Metric[] {
    const help = "How far this machine's clock is ahead of the manager's time; negative: behind.";
    return [gauge('clock_offset_seconds', help, () => this.#offset_s())];
  }

  #offset_s(): number {
    return Math.round(this.#clock.machine_ahead_ms) / 1_000;
  }

  /** One line when something begins, and one when it ends. */
  #look(): void {
    const { machine_ahead_ms, ahead_ms } = this.#clock;
    const is_machine_off = isOff(machine_ahead_ms);
    const is_ahead = isOff(ahead_ms);
    const facts = { offset_s: this.#offset_s() };
    if (is_machine_off && !this.#is_machine_off) {
      this.#log.warn(
        facts,
        `the clock of this machine is ${away(machine_ahead_ms)} the manager's time, which goes on by the database's`,
      );
    }
    if (!is_machine_off && this.#is_machine_off)
      this.#log.info(facts, "the clock of this machine agrees with the manager's time again");
    if (is_ahead && !this.#is_ahead) {
      this.#log.warn(
        `the database's clock went back: this replica's time, ${away(ahead_ms)} it, runs slower until it is the same`,
      );
    }
    if (!is_ahead && this.#is_ahead) this.#log.info("this replica's time is the database's again");
    this.#is_machine_off = is_machine_off;
    this.#is_ahead = is_ahead;
  }
}

function isOff(ahead_ms: number): boolean {
  return Math.abs(ahead_ms) > CLOCK_OFF_MS;
}

function away(ahead_ms: number): string {
  return `${(Math.abs(ahead_ms) / 1_000).toFixed(1)} s ${ahead_ms > 0 ? 'ahead of' : 'behind'}`;
}
