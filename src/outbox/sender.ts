import type { AttemptResult } from '../webhook/retry.ts';
import { standardWebhookHeaders } from '../webhook/signature.ts';
import type { Transport } from '../webhook/transport.ts';
import type { DueRecord } from './store.ts';

/** Makes the attempts of a dispatcher: where a record goes and how an attempt at it is signed. */
export interface Sender {
  /** One attempt, begun at `started_at_ms` (wall time). Never rejects. */
  send(record: DueRecord, attempt: number, started_at_ms: number): Promise<AttemptResult>;
  /** Gives up what is under way. */
  close(): Promise<void>;
}

/** Every record to one URL, with the headers of Standard Webhooks made anew at each attempt. */
export class UrlSender implements Sender {
  readonly #url: string;
  readonly #secret: string;
  readonly #timeout_ms: number;
  readonly #transport: Transport;

  constructor(url: string, secret: string, timeout_ms: number, transport: Transport) {
    this.#url = url;
    this.#secret = secret;
    this.#timeout_ms = timeout_ms;
    this.#transport = transport;
  }

  send(record: DueRecord, attempt: number, started_at_ms: number): Promise<AttemptResult> {
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

  close(): Promise<void> {
    return this.#transport.close();
  }
}
