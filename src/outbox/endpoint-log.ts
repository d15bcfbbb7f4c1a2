import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { ENDPOINT_FAILURES } from '../contract/defaults.ts';
import type { EndpointView } from '../contract/deliveries.ts';
import { type AttemptResult, endpointVerdict } from '../webhook/retry.ts';
import type { AttemptReport } from './attempts.ts';

/**
 * Logs one line when an endpoint goes into backoff and one when it has recovered; one when it refuses everything and one when
 * it no longer does. Source: contract section 8.
 */
export class EndpointLog {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #endpoint: string;
  #backoff_since_ms: number | null = null;
  #refusals: EndpointView['refusals'] = null;

  /** `endpoint` names it in the log; of a URL, only what `loggedEndpoint` leaves. */
  constructor(log: Log, clock: Clock, endpoint: string) {
    this.#log = log;
    this.#clock = clock;
    this.#endpoint = endpoint;
  }

  /** Notes an attempt that has ended; `health` and `refusals` are the endpoint's after it. */
  note({ health, refusals }: EndpointView, { result }: Pick<AttemptReport, 'result'>): void {
    this.#noteBackoff(health, result);
    this.#noteRefusals(refusals, result);
  }

  #noteBackoff(health: EndpointView['health'], result: AttemptResult): void {
    const endpoint = this.#endpoint;
    const now_ms = this.#clock.monotonicMs();
    const is_over = health === 'rejecting' || (health === 'ok' && endpointVerdict(result) === 'up');
    if (health === 'backing_off' && this.#backoff_since_ms === null) {
      this.#backoff_since_ms = now_ms;
      const { status, error, error_detail } = result;
      const facts = { endpoint, failures: ENDPOINT_FAILURES, status, error, error_detail };
      this.#log.warn(facts, 'the endpoint is in backoff');
    } else if (this.#backoff_since_ms !== null && is_over) {
      const backoff_ms = Math.round(now_ms - this.#backoff_since_ms);
      this.#backoff_since_ms = null;
      this.#log.info({ endpoint, backoff_ms }, 'the endpoint has recovered');
    }
  }

  /** `status` is that of the latest refusal. */
  #noteRefusals(refusals: EndpointView['refusals'], result: AttemptResult): void {
    const endpoint = this.#endpoint;
    if (refusals && !this.#refusals) {
      this.#log.warn({ endpoint, ...refusals }, 'the endpoint is rejecting: it refuses every event');
    } else if (!refusals && this.#refusals) {
      const { status: answered, error } = result;
      const facts = { endpoint, ...this.#refusals, answered, error };
      this.#log.info(facts, 'the endpoint is no longer rejecting');
    }
    this.#refusals = refusals;
  }
}

/** Scheme, host and port of a webhook URL: its path and query may hold secrets. Null for a text that is no URL. */
export function loggedEndpoint(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null;
}
