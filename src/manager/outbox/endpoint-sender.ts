import { type Clock, sleep } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ATTEMPT_TIMEOUT_MS } from '../../contract/defaults.ts';
import type { Sender } from '../../outbox/sender.ts';
import type { DueRecord } from '../../outbox/store.ts';
import type { AttemptResult } from '../../webhook/retry.ts';
import { type StandardWebhookHeaders, standardWebhookHeaders } from '../../webhook/signature.ts';
import { storedHeaders } from '../../webhook/stored-signatures.ts';
import type { Transport } from '../../webhook/transport.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import { reasonOf } from '../database/database-errors.ts';
import type { Seal } from '../database/seal.ts';
import type { AttemptBudget, EndpointLoad } from './attempt-budget.ts';
import type { EndpointRecordStore, StoredRequest } from './endpoint-record-store.ts';
import { secretContext } from './outbox-store.ts';

/** Pause before a failed read is repeated. */
const DATABASE_RETRY_MS = 250;

/** The result of an attempt that was not made because the dispatcher has stopped. */
const NOT_MADE: AttemptResult = {
  ...{ status: null, error: null, error_detail: null, retry_after: null, response_body: null },
};
/** The result if no request can be made from the stored record. */
const UNUSABLE: AttemptResult = {
  ...NOT_MADE,
  error: 'protocol',
  error_detail: 'the record cannot be sent as it is stored',
};

interface Parts {
  records: EndpointRecordStore;
  transport: Transport;
  seal: Seal;
  log: Log;
  budget: AttemptBudget;
  load: EndpointLoad;
  clock: Clock;
  database_clock: DatabaseClock;
  /** Whether an attempt that starts now ends within the lease. */
  hasLease: () => boolean;
  /** Called when a record is no longer this replica's to send; must stop the dispatcher at once. */
  onLost: () => void;
}

/** Makes the attempts at one endpoint: reads each request, adds the headers of the attempt, and sends it. */
export class EndpointSender implements Sender {
  readonly #parts: Parts;
  #is_closed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Makes one attempt (`started_at_ms`: wall time). Never rejects; waits while the database is unavailable. */
  async send(record: DueRecord, attempt: number, started_at_ms: number): Promise<AttemptResult> {
    const { budget, load, transport } = this.#parts;
    const end = budget.begin(load);
    try {
      const request = await this.#request(record);
      if (!request) return NOT_MADE;
      const { url, body } = request;
      const stored: Record<string, string> = JSON.parse(request.headers);
      // For the log line of a record that is not delivered.
      if (stored.traceparent !== undefined) record.headers = { traceparent: stored.traceparent };
      const headers = {
        ...stored,
        ...this.#standardWebhooks(record.event_id, request, started_at_ms),
        'X-Service-Attempt': String(attempt),
      };
      return await transport.send({ url, headers, body }, ATTEMPT_TIMEOUT_MS);
    } catch (error) {
      const { event_id } = record;
      this.#parts.log.error(
        { event_id, reason: (error as Error).message },
        'a record cannot be sent as stored',
      );
      return UNUSABLE;
    } finally {
      end();
    }
  }

  /** Reads the request; waits until the database confirms that it is still this replica's to send. Null once closed. */
  async #request(record: DueRecord): Promise<StoredRequest | null> {
    const { records, hasLease, clock, log, onLost } = this.#parts;
    while (!this.#is_closed) {
      try {
        const request = await records.request(record);
        if (!request) onLost();
        else if (hasLease() && !this.#is_closed) return request;
      } catch (error) {
        log.debug({ reason: reasonOf(error) }, 'an attempt is waiting for the database');
      }
      if (!this.#is_closed) await sleep(clock, DATABASE_RETRY_MS);
    }
    return null;
  }

  /** Ends waiting and closes the transport. */
  close(): Promise<void> {
    this.#is_closed = true;
    return this.#parts.transport.close();
  }

  #standardWebhooks(
    event_id: string,
    { signatures, secret_sealed, body }: StoredRequest,
    started_at_ms: number,
  ): StandardWebhookHeaders | null {
    if (signatures) return storedHeaders(JSON.parse(signatures), event_id, this.#parts.database_clock.now());
    if (!secret_sealed) return null;
    const secret = this.#secret(event_id, secret_sealed);
    return standardWebhookHeaders(secret, event_id, Math.floor(started_at_ms / 1000), body);
  }

  #secret(event_id: string, sealed: string): string {
    try {
      return this.#parts.seal.open(sealed, secretContext(event_id));
    } catch {
      // The stored signature of the body is still sent.
      this.#parts.log.error(
        { event_id },
        'a webhook secret cannot be opened with the key of --secret-key-file',
      );
      return '';
    }
  }
}
