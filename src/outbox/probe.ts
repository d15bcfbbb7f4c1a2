import type { Clock } from '../base/clock.ts';
import type { Verdict } from '../webhook/retry.ts';
import type { DueRecord } from './store.ts';
import type { DeliveryWindow } from './window.ts';

/** The longest wait of a probe before it reads the store again. */
const RECHECK_MS = 30_000;

/** The dependencies of a probe. */
export interface ProbeParts {
  window: DeliveryWindow;
  clock: Clock;
  /** The store's clock, in ms. */
  now: () => number;
  /** Whether an attempt may start now. */
  mayStart: () => boolean;
  /** Makes one attempt; starts it before it returns. */
  attempt: (record: DueRecord) => Promise<Verdict>;
}

/** The one attempt that a backed-off endpoint is given per step. Source: contract section 3, Endpoint down. */
export class EndpointProbe {
  readonly #parts: ProbeParts;
  #waiting: (() => void) | null = null;
  /** Counts the wake-ups: one that comes while the probe reads the store must not be missed. */
  #probe_wakeups = 0;

  constructor(parts: ProbeParts) {
    this.#parts = parts;
  }

  /** Makes a waiting probe look for a record again: one arrived or was scheduled, or an attempt ended. */
  wake(): void {
    this.#probe_wakeups += 1;
    this.#waiting?.();
  }

  /**
   * Makes one attempt: at the lowest untried record, else at the retry that may go first. Waits until there is such a
   * record. Resolves to `nothing` where `signal` aborts before.
   */
  async run(signal: AbortSignal): Promise<Verdict> {
    const { window, now, mayStart, attempt } = this.#parts;
    while (!signal.aborted) {
      const wakeups = this.#probe_wakeups;
      await window.readUntried().catch(() => {});
      const has_untried = window.untried_count > 0;
      const retry = has_untried ? null : await window.probeCandidate().catch(() => null);
      // The endpoint may have recovered in the meantime, or the delivery may be paused.
      if (signal.aborted) break;
      const record = mayStart() ? (window.takeUntried() ?? window.takeProbe(retry)) : null;
      if (record) return attempt(record);
      const wait_ms = retry ? retry.probe_ms - now() : 0;
      if (wakeups !== this.#probe_wakeups) continue;
      await this.#wait(wait_ms > 0 ? wait_ms : RECHECK_MS, signal);
    }
    return 'nothing';
  }

  /** Until `delay_ms` has passed, `wake` is called, or `signal` aborts. */
  #wait(delay_ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel();
        signal.removeEventListener('abort', done);
        this.#waiting = null;
        resolve();
      };
      const timer = this.#parts.clock.after(Math.max(1, delay_ms), done);
      signal.addEventListener('abort', done);
      this.#waiting = done;
    });
  }
}
