import type { Clock } from '../base/clock.ts';
import { ApiError } from '../contract/errors.ts';
import type { SandboxEvent } from '../contract/events.ts';
import type { Append, AppendResult } from '../outbox/store.ts';

/** How long a caller is asked to wait where the outbox takes nothing. */
const RETRY_AFTER_S = 1;

/** No publisher's key begins so: those are visible ASCII. */
const OWN_KEY_PREFIX = ' ';

/** What was given to an acknowledged event. */
export interface Receipt {
  event_id: string;
  sequence: number;
}

/** Where events go. */
export interface EventSink {
  append(append: Append): Promise<AppendResult>;
}

/**
 * The one way of an event into the outbox: it counts as emitted when the promise resolves, not before.
 * Source: contract section 3, Acknowledge. Without a webhook nothing is kept.
 */
export class Publisher {
  readonly #sink: EventSink;
  readonly #clock: Clock;
  #has_webhook = false;
  #is_closed = false;

  constructor(sink: EventSink, clock: Clock) {
    this.#sink = sink;
    this.#clock = clock;
  }

  get has_webhook(): boolean {
    return this.#has_webhook;
  }

  /** From now on there is somewhere to deliver to. */
  open(): void {
    this.#has_webhook = true;
  }

  /** Takes no publishes any more; the daemon's own events still are. */
  close(): void {
    this.#is_closed = true;
  }

  /**
   * A publish: `payload` is JSON text and is kept as it is. Throws `webhook_not_configured`, `shutting_down`,
   * `outbox_full`, `outbox_unavailable`, or `conflict` for an idempotency key that was used with other bytes.
   */
  async publish(payload: string, idempotency_key?: string): Promise<Receipt> {
    if (!this.#has_webhook) throw new ApiError('webhook_not_configured');
    if (this.#is_closed) throw new ApiError('shutting_down');
    const happened_at_ms = this.#clock.wallMs();
    const draft = { event_type: 'agent.event' as const, happened_at_ms, payload, idempotency_key };
    const result = await this.#sink.append({ drafts: [draft] });
    switch (result.outcome) {
      case 'committed':
      case 'repeated':
        return result.records[0] as Receipt;
      case 'conflict':
        throw new ApiError('conflict', 'Idempotency-Key: was used before with another payload.', {
          field: 'Idempotency-Key',
        });
      case 'full':
        throw new ApiError('outbox_full', undefined, { retry_after_s: RETRY_AFTER_S });
      default:
        throw new ApiError('outbox_unavailable', undefined, { retry_after_s: RETRY_AFTER_S });
    }
  }

  /**
   * One of the daemon's own events. Throws `outbox_full`, or `outbox_unavailable`, after which it may be kept all the
   * same; the caller offers it again. By its `key` it is kept once, however often it is offered, also over a restart.
   * With `only_after` it is kept only where the event of that key is.
   */
  async emit(event: SandboxEvent, key: string, only_after?: string): Promise<void> {
    if (!this.#has_webhook) return;
    const { event_type, happened_at_ms, payload } = event;
    const idempotency_key = OWN_KEY_PREFIX + key;
    const draft = { event_type, happened_at_ms, payload: JSON.stringify(payload), idempotency_key };
    const requires = only_after === undefined ? undefined : OWN_KEY_PREFIX + only_after;
    const { outcome } = await this.#sink.append({ drafts: [draft], requires });
    if (outcome === 'full') throw new ApiError('outbox_full');
    if (outcome === 'unavailable') throw new ApiError('outbox_unavailable');
  }
}
