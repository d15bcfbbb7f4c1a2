import type { Log } from '../../base/log.ts';
import { ATTEMPT_TIMEOUT_MS } from '../../contract/defaults.ts';
import type { AttemptError } from '../../contract/words.ts';
import type { Sender } from '../../outbox/sender.ts';
import { storedHeaders } from '../../webhook/deleted-request.ts';
import type { AttemptResult } from '../../webhook/retry.ts';
import { type StandardWebhookHeaders, standardWebhookHeaders } from '../../webhook/signature.ts';
import type { Transport } from '../../webhook/transport.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { Seal } from '../database/seal.ts';
import type { OutboxCharge } from '../sandboxes/ports.ts';
import type { EndpointRecord } from './endpoint-record-store.ts';
import { secretContext } from './outbox-store.ts';

/** The result if no request can be made from the stored record. */
const UNUSABLE: AttemptResult = {
  status: null,
  error: 'protocol',
  error_detail: 'the record cannot be sent as it is stored',
  retry_after: null,
  response_body: null,
};

/** Errors before anything of a request was sent. */
const UNREACHED: ReadonlySet<AttemptError> = new Set(['dns', 'connect', 'tls', 'blocked']);

interface Parts {
  transport: Transport;
  seal: Seal;
  log: Log;
  clock: DatabaseClock;
  charge?: OutboxCharge | undefined;
}

/** Makes the attempts at one endpoint: adds the headers of the attempt to the stored request, and sends it. */
export class EndpointSender implements Sender<EndpointRecord> {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Makes one attempt (`started_at_ms`: wall time). Never rejects. */
  async send(record: EndpointRecord, attempt: number, started_at_ms: number): Promise<AttemptResult> {
    const { transport, log } = this.#parts;
    const { event_id, url, body } = record;
    try {
      if (record.unusable !== null) throw new Error(record.unusable);
      const headers = {
        ...record.headers,
        ...this.#standardWebhooks(record, started_at_ms),
        'X-Service-Attempt': String(attempt),
      };
      const result = await transport.send({ url, headers, body }, ATTEMPT_TIMEOUT_MS);
      if (wasSent(result)) this.#charge(record, headers);
      return result;
    } catch (error) {
      log.error({ event_id, reason: (error as Error).message }, 'a record cannot be sent as stored');
      return UNUSABLE;
    }
  }

  /** Closes the transport. */
  close(): Promise<void> {
    return this.#parts.transport.close();
  }

  /** What the manager itself has to say is not charged. */
  #charge({ sequence, sandbox_id, team_id, body }: EndpointRecord, headers: Record<string, string>): void {
    if (sequence === null) return;
    const head = Object.entries(headers).reduce(
      (sum, [name, value]) => sum + name.length + value.length + 4,
      0,
    );
    this.#parts.charge?.sent({ sandbox_id, team_id }, head + Buffer.byteLength(body));
  }

  #standardWebhooks(
    { event_id, signatures, secret_sealed, body }: EndpointRecord,
    started_at_ms: number,
  ): StandardWebhookHeaders | null {
    if (signatures) return storedHeaders(JSON.parse(signatures), event_id, this.#parts.clock.wallMs());
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

/** Whether the receiver was reached, and so got the request, or part of it. */
function wasSent({ status, error }: AttemptResult): boolean {
  return status !== null || !(error !== null && UNREACHED.has(error));
}
