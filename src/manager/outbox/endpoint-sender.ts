import { type Clock, sleep } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ATTEMPT_TIMEOUT_MS } from '../../contract/defaults.ts';
import type { Sender } from '../../outbox/sender.ts';
import type { DueRecord } from '../../outbox/store.ts';
import type { AttemptResult } from '../../webhook/retry.ts';
import { type StandardWebhookHeaders, standardWebhookHeaders } from '../../webhook/signature.ts';
import { storedHeaders } from '../../webhook/stored-signatures.ts';
import type { Transport } from '../../webhook/transport.ts';
import type { DatabaseClock } from '../database/clock-store.ts';
import { reasonOf } from '../database/database-errors.ts';
import type { Seal } from '../database/seal.ts';
import type { AttemptBudget, EndpointLoad } from './attempt-budget.ts';
import type { EndpointRecordStore, StoredRequest } from './endpoint-record-store.ts';
import { secretContext } from './outbox-store.ts';

/** How long until a database that did not answer is asked again. */
const DATABASE_RETRY_MS = 250;

/** An attempt that was not made: its dispatcher has been stopped. */
const NOT_MADE: AttemptResult = { status: null, error: null, retry_after: null, response_body: null };
/** No request can be made of what is stored. */
const UNUSABLE: AttemptResult = { ...NOT_MADE, error: 'protocol' };

interface Parts {
  records: EndpointRecordStore;
  transport: Transport;
  seal: Seal;
  log: Log;
  permits: AttemptBudget;
  use: EndpointLoad;
  clock: Clock;
  database_clock: DatabaseClock;
  /** Whether an attempt that begins now ends within the lease. */
  has_lease: () => boolean;
  /** Called where a record is no longer this replica's: must stop the dispatcher at once. */
  on_lost: () => void;
}

/** Attempts at the records of one endpoint: each is read, signed and sent as it was stored. */
export class EndpointSender implements Sender {
  readonly #parts: Parts;
  #is_closed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async send(record: DueRecord, attempt: number, started_at_ms: number): Promise<AttemptResult> {
    const { permits, use, transport } = this.#parts;
    const end = permits.begin(use);
    try {
      const request = await this.#request(record);
      if (!request) return NOT_MADE;
      const { url, body } = request;
      const headers = {
        ...JSON.parse(request.headers),
        ...this.#standardWebhooks(record.event_id, request, started_at_ms),
        'X-Service-Attempt': String(attempt),
      };
      return await transport.send({ url, headers, body }, ATTEMPT_TIMEOUT_MS);
    } catch (error) {
      const { event_id } = record;
      this.#parts.log.error({ event_id, reason: (error as Error).message }, 'a record cannot be sent');
      return UNUSABLE;
    } finally {
      end();
    }
  }

  /** Reads what is to be sent; while the database cannot tell whether it still is, nothing is. */
  async #request(record: DueRecord): Promise<StoredRequest | null> {
    const { records, has_lease, clock, log, on_lost } = this.#parts;
    while (!this.#is_closed) {
      try {
        const request = await records.request(record);
        if (!request) on_lost();
        else if (has_lease() && !this.#is_closed) return request;
      } catch (error) {
        log.debug({ reason: reasonOf(error) }, 'a record waits for the database');
      }
      if (!this.#is_closed) await sleep(clock, DATABASE_RETRY_MS);
    }
    return null;
  }

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
      // The signature of the body is stored: it is sent with that alone.
      this.#parts.log.error({ event_id }, 'a webhook secret does not open with the key of --secret-key-file');
      return '';
    }
  }
}
