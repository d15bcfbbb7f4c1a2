import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { ENDPOINT_FAILURES } from '../contract/defaults.ts';
import { endpointVerdict } from '../webhook/retry.ts';
import type { AttemptReport } from './attempts.ts';

/** Logs one line when an endpoint goes into backoff, and one when it has recovered. Source: contract section 8. */
export class EndpointLog {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #endpoint: string;
  #backoff_since_ms: number | null = null;

  /** `endpoint` names it in the log; of a URL, only what `loggedEndpoint` leaves. */
  constructor(log: Log, clock: Clock, endpoint: string) {
    this.#log = log;
    this.#clock = clock;
    this.#endpoint = endpoint;
  }

  /** Notes an attempt that has ended; `is_healthy` is the endpoint's health after it. */
  note(is_healthy: boolean, { result }: Pick<AttemptReport, 'result'>): void {
    const endpoint = this.#endpoint;
    const now_ms = this.#clock.monotonicMs();
    if (!is_healthy && this.#backoff_since_ms === null) {
      this.#backoff_since_ms = now_ms;
      const { status, error, error_detail } = result;
      const facts = { endpoint, failures: ENDPOINT_FAILURES, status, error, error_detail };
      this.#log.warn(facts, 'the endpoint is in backoff');
    } else if (this.#backoff_since_ms !== null && is_healthy && endpointVerdict(result) === 'up') {
      const backoff_ms = Math.round(now_ms - this.#backoff_since_ms);
      this.#backoff_since_ms = null;
      this.#log.info({ endpoint, backoff_ms }, 'the endpoint has recovered');
    }
  }
}

/** Scheme, host and port of a webhook URL: its path and query may hold secrets. Null for a text that is no URL. */
export function loggedEndpoint(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null;
}
