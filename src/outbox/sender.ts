import type { AttemptResult } from '../webhook/retry.ts';
import { standardWebhookHeaders } from '../webhook/signature.ts';
import type { Transport } from '../webhook/transport.ts';
import type { LoadedRecord } from './store.ts';

/** Makes the attempts of a dispatcher; it knows the URL of a record and how an attempt is signed. */
export interface Sender<Loaded extends LoadedRecord = LoadedRecord> {
  /** One attempt, begun at `started_at_ms` (wall time). Never rejects. */
  send(record: Loaded, attempt: number, started_at_ms: number): Promise<AttemptResult>;
  /** Aborts the attempts in flight. Idempotent. */
  close(): Promise<void>;
}

/** Sends every record to one URL; each attempt has its own Standard Webhooks headers. Source: contract section 2. */
export class UrlSender implements Sender {
  readonly #url: string;
  readonly #secret: string;
  readonly #timeout_ms: number;
  readonly #transport: Transport;

  /** `secret`: empty where nothing is signed. `timeout_ms`: of one attempt, response included. */
  constructor(url: string, secret: string, timeout_ms: number, transport: Transport) {
    this.#url = url;
    this.#secret = secret;
    this.#timeout_ms = timeout_ms;
    this.#transport = transport;
  }

  /** See `Sender.send`. */
  send(record: LoadedRecord, attempt: number, started_at_ms: number): Promise<AttemptResult> {
    const { event_id, headers, body } = record;
    const timestamp_s = Math.floor(started_at_ms / 1000);
    return this.#transport.send(
      {
        url: this.#url,
        headers: {
          ...headers,
          ...standardWebhookHeaders(this.#secret, event_id, timestamp_s, body),
          'X-Service-Attempt': String(attempt),
        },
        body,
      },
      this.#timeout_ms,
    );
  }

  /** See `Sender.close`. */
  close(): Promise<void> {
    return this.#transport.close();
  }
}
