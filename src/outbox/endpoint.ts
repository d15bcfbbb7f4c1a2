import pRetry from 'p-retry';
import { type Clock, sleep, timestamp } from '../base/clock.ts';
import { OWN_WAITS } from '../base/own-waits.ts';
import { ENDPOINT_FAILURES, ENDPOINT_REFUSALS, ENDPOINT_REFUSED_EVENTS } from '../contract/defaults.ts';
import type { EndpointView } from '../contract/deliveries.ts';
import { endpointBackoffMs, type Verdict } from '../webhook/retry.ts';

/**
 * The health of one endpoint.
 *
 * | State | Entered by | Left by |
 * |---|---|---|
 * | ok | construction; any attempt that succeeds, the probe or one that was still under way | the others |
 * | backing off: one probe per step | the third consecutive `down`, in the order in which attempts end | `up`, rejecting, `stop` |
 * | rejecting: sent on like one that is ok | as many consecutive `refused` as count, of several events | any attempt that ends otherwise |
 *
 * Source: contract section 3, Endpoint down, Endpoint that refuses.
 */
export class Endpoint {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #probe: (signal: AbortSignal) => Promise<Verdict>;
  readonly #onHealthy: () => void;
  #failures_in_a_row = 0;
  #recovery: AbortController | null = null;
  #next_probe_ms: number | null = null;
  #refusals: Refusals | null = null;

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

  /** The endpoint as people see it. */
  view(): EndpointView {
    const { status, count, is_rejecting } = this.#refusals ?? NO_REFUSALS;
    const refusals = is_rejecting ? { status, count } : null;
    if (this.is_healthy) return { health: refusals ? 'rejecting' : 'ok', next_probe_at: null, refusals };
    const probe_ms = this.#next_probe_ms;
    const to_wall_ms = this.#clock.wallMs() - this.#clock.monotonicMs();
    const next_probe_at = probe_ms === null ? null : timestamp(to_wall_ms + probe_ms);
    return { health: 'backing_off', next_probe_at, refusals: null };
  }

  /** Monotonic time of the next probe in ms; 0 while healthy, and while the probe is under way or waits for a record. */
  get next_probe_ms(): number {
    return this.#next_probe_ms ?? 0;
  }

  /** Counts the verdict of an attempt at an event that has ended, with `status`. */
  observe(verdict: Verdict, event: { readonly event_id: string }, status: number | null): void {
    const is_refused = verdict === 'refused';
    this.#refusals = is_refused ? nextRefusal(this.#refusals, event.event_id, status ?? 0) : null;
    if (verdict === 'up' || this.#refusals?.is_rejecting) {
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
    // The library repeats the probe until `stop` and counts the failures.
    await pRetry(probe, {
      ...OWN_WAITS,
      signal,
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

/** Refused attempts in a row. */
interface Refusals {
  /** Of the latest. */
  status: number;
  count: number;
  /** The events of the last ones, as many as count. */
  event_ids: string[];
  is_rejecting: boolean;
}

const NO_REFUSALS: Refusals = { status: 0, count: 0, event_ids: [], is_rejecting: false };

/** The refusals after one more. Rejecting lasts, also if the same event is then the only one that is tried. */
function nextRefusal(before: Refusals | null, event_id: string, status: number): Refusals {
  const { count, event_ids: known, is_rejecting } = before ?? NO_REFUSALS;
  const event_ids = [...known, event_id].slice(-ENDPOINT_REFUSALS);
  const is_enough = event_ids.length === ENDPOINT_REFUSALS;
  const is_several = new Set(event_ids).size >= ENDPOINT_REFUSED_EVENTS;
  return { status, count: count + 1, event_ids, is_rejecting: is_rejecting || (is_enough && is_several) };
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
