import pRetry from 'p-retry';
import { type Clock, sleep, timestamp } from '../base/clock.ts';
import { ENDPOINT_FAILURES } from '../contract/defaults.ts';
import { endpointBackoffMs } from '../webhook/retry.ts';

/** What a finished attempt says about the endpoint; `nothing` if it concerns only the record. */
export type Verdict = 'up' | 'down' | 'nothing';

/**
 * The health of one endpoint.
 *
 * | State | Entered by | Left by |
 * |---|---|---|
 * | healthy | construction; any attempt that succeeds, the probe or one that was still under way | the third consecutive `down` |
 * | backed off: one probe per step | the third consecutive `down`, in the order in which attempts end | `up`, `stop` |
 *
 * Source: contract section 3, Endpoint down.
 */
export class Endpoint {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #probe: (signal: AbortSignal) => Promise<Verdict>;
  readonly #onHealthy: () => void;
  #failures_in_a_row = 0;
  #recovery: AbortController | null = null;
  #next_probe_ms: number | null = null;

  /** `probe` makes one attempt and resolves to its verdict; it may wait for a record to send. `random`: in [0, 1). */
  constructor(
    clock: Clock,
    random: () => number,
    probe: (signal: AbortSignal) => Promise<Verdict>,
    onHealthy: () => void,
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#probe = probe;
    this.#onHealthy = onHealthy;
  }

  /** Whether the endpoint is not backed off. */
  get is_healthy(): boolean {
    return this.#recovery === null;
  }

  /** When the next probe starts, as RFC 3339; null while healthy or while the probe is under way. */
  get next_probe_at(): string | null {
    if (this.#next_probe_ms === null) return null;
    return timestamp(this.#clock.wallMs() + this.#next_probe_ms - this.#clock.monotonicMs());
  }

  /** Monotonic time of the next probe in ms; 0 while healthy, and while the probe is under way or waits for a record. */
  get next_probe_ms(): number {
    return this.#next_probe_ms ?? 0;
  }

  /** Counts the verdict of an attempt that has ended. */
  observe(verdict: Verdict): void {
    if (verdict === 'up') {
      this.#failures_in_a_row = 0;
      if (this.stop()) this.#onHealthy();
    } else if (verdict === 'down' && this.is_healthy) {
      this.#failures_in_a_row += 1;
      if (this.#failures_in_a_row >= ENDPOINT_FAILURES) void this.#backOff();
    }
  }

  /** Ends probing; returns whether the endpoint was backed off. Idempotent. */
  stop(): boolean {
    if (!this.#recovery) return false;
    this.#recovery.abort();
    this.#recovery = null;
    this.#next_probe_ms = null;
    return true;
  }

  async #backOff(): Promise<void> {
    const recovery = new AbortController();
    const { signal } = recovery;
    this.#recovery = recovery;
    const probe = async () => {
      const verdict = await this.#probe(signal);
      if (verdict !== 'up') throw new FailedProbe(verdict);
    };
    await this.#wait(0, signal);
    if (signal.aborted) return;
    // The library repeats the probe until `stop` and counts the failures. The waits are ours: they run on our clock.
    await pRetry(probe, {
      signal,
      retries: Number.POSITIVE_INFINITY,
      minTimeout: 0,
      shouldConsumeRetry: ({ error }) => isDown(error),
      onFailedAttempt: ({ error, retriesConsumed }) =>
        this.#wait(retriesConsumed + (isDown(error) ? 1 : 0), signal),
    }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  async #wait(failed_probes: number, signal: AbortSignal): Promise<void> {
    const delay_ms = endpointBackoffMs(failed_probes, this.#random());
    this.#next_probe_ms = this.#clock.monotonicMs() + delay_ms;
    await sleep(this.#clock, delay_ms, signal);
    if (!signal.aborted) this.#next_probe_ms = null;
  }
}

/** A probe after which the endpoint stays backed off. */
class FailedProbe extends Error {
  readonly verdict: Verdict;

  constructor(verdict: Verdict) {
    super('the endpoint is still down');
    this.verdict = verdict;
  }
}

/** A probe whose result concerns only its record does not lengthen the next step. */
function isDown(error: Error): boolean {
  return error instanceof FailedProbe && error.verdict === 'down';
}
