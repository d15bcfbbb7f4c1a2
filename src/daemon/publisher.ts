import { type Clock, runTime, sleep } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import {
  PUBLISHES_WAITING_MAX,
  PUBLISHES_WAITING_MAX_BYTES,
  SMALL_BODY_BYTES,
} from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { EventType, SandboxEvent } from '../contract/events.ts';
import type { Append, AppendResult } from '../outbox/store.ts';

/** When a caller should retry after the outbox has refused a record. */
const RETRY_AFTER_S = 1;

/** The delay before an event that the outbox refused is retried. */
const EMIT_RETRY_MS = 1_000;

/** Keys of publishers are visible ASCII, so none begins with a space. */
const OWN_KEY_PREFIX = ' ';

const NOT_SENT = 'The webhook of this sandbox is not sent agent.event.';

/** The identity of an acknowledged event. */
export interface Receipt {
  event_id: string;
  sequence: number;
}

/** Where events are stored: the outbox. */
export interface EventSink {
  /** Resolves when the events are committed, or with the reason why not. */
  append(append: Append): Promise<AppendResult>;
}

/**
 * The way of every event but those of files into the outbox. An event is emitted when the promise resolves, not before.
 * Without a webhook, events are not stored, and neither are those of a kind that the webhook is not sent: they take no
 * sequence. The sandbox's own life is stored in any case where a manager reads it. Source: contract section 3,
 * Acknowledge, and section 4, POST `/sandbox/init`.
 */
export class Publisher {
  readonly #sink: EventSink;
  readonly #clock: Clock;
  #has_webhook = false;
  /** Null: all of them. */
  #kinds: ReadonlySet<EventType> | null = null;
  #keeps_lifecycle = false;
  #is_closed = false;
  /** Publishes that wait for their answer, and the bytes of those that are not small. */
  #waiting = 0;
  #waiting_bytes = 0;

  constructor(sink: EventSink, clock: Clock) {
    this.#sink = sink;
    this.#clock = clock;
  }

  /** Whether events are stored and delivered. */
  get has_webhook(): boolean {
    return this.#has_webhook;
  }

  /** Starts to accept events: there is a webhook, which is sent these kinds; null: all of them. */
  open(kinds: readonly EventType[] | null = null): void {
    this.#has_webhook = true;
    this.#kinds = kinds && new Set(kinds);
  }

  /** Whether the webhook is sent events of a kind. */
  takes(kind: EventType): boolean {
    return this.#has_webhook && (this.#kinds === null || this.#kinds.has(kind));
  }

  /** Stores `sandbox.*` events also where no webhook is sent them, for the manager. */
  keepLifecycle(): void {
    this.#keeps_lifecycle = true;
  }

  /** Refuses further publishes; the daemon's own events are still accepted. */
  close(): void {
    this.#is_closed = true;
  }

  /**
   * Stores an `agent.event`; `payload` is JSON text and is stored unchanged, and so is `traceparent`, which is checked
   * before. Throws `webhook_not_configured` (also where the webhook is not sent this kind), `shutting_down`, `outbox_full`,
   * `outbox_unavailable`, or `conflict` for an idempotency key that was used with other bytes.
   */
  async publish(payload: string, idempotency_key?: string, traceparent?: string): Promise<Receipt> {
    if (!this.#has_webhook) throw new ApiError('webhook_not_configured');
    if (!this.takes('agent.event')) throw new ApiError('webhook_not_configured', NOT_SENT);
    if (this.#is_closed) throw new ApiError('shutting_down');
    const happened_at_ms = this.#clock.wallMs();
    const draft = {
      event_type: 'agent.event' as const,
      happened_at_ms,
      payload,
      idempotency_key,
      traceparent,
    };
    const bytes = payload.length > SMALL_BODY_BYTES ? payload.length : 0;
    if (
      this.#waiting === PUBLISHES_WAITING_MAX ||
      this.#waiting_bytes + bytes > PUBLISHES_WAITING_MAX_BYTES
    ) {
      throw new ApiError('outbox_unavailable', 'Too many publishes are waiting.', {
        retry_after_s: RETRY_AFTER_S,
      });
    }
    this.#waiting += 1;
    this.#waiting_bytes += bytes;
    const result = await this.#sink.append({ drafts: [draft] });
    this.#waiting -= 1;
    this.#waiting_bytes -= bytes;
    switch (result.outcome) {
      case 'committed':
      case 'repeated':
        return result.records[0] as Receipt;
      case 'conflict':
        throw new ApiError('conflict', 'Idempotency-Key: was already used with a different payload.', {
          field: 'Idempotency-Key',
        });
      case 'full':
        throw new ApiError('outbox_full', undefined, { retry_after_s: RETRY_AFTER_S });
      default:
        throw new ApiError('outbox_unavailable', undefined, { retry_after_s: RETRY_AFTER_S });
    }
  }

  /**
   * Stores one of the daemon's own events. Throws `outbox_full` or `outbox_unavailable`; after the latter the event may
   * have been stored, so the caller must retry. Its `key` makes sure that it is stored once, even across restarts. With
   * `only_after` it is stored only if the event with that key is.
   */
  async emit(event: SandboxEvent, key: string, only_after?: string): Promise<void> {
    const { event_type, happened_at_ms, payload } = event;
    const is_sent = this.takes(event_type);
    const is_kept = this.#keeps_lifecycle && event_type.startsWith('sandbox.');
    if (!is_sent && !is_kept) return;
    const idempotency_key = OWN_KEY_PREFIX + key;
    const unsent = is_sent ? undefined : (true as const);
    const draft = { event_type, happened_at_ms, payload: JSON.stringify(payload), idempotency_key, unsent };
    const requires = only_after === undefined ? undefined : OWN_KEY_PREFIX + only_after;
    const { outcome } = await this.#sink.append({ drafts: [draft], requires });
    if (outcome === 'full') throw new ApiError('outbox_full');
    if (outcome === 'unavailable') throw new ApiError('outbox_unavailable');
  }
}

/**
 * Emits an event of the sandbox's own life, and retries while the outbox refuses it. After a failure `givesUp` is
 * asked, with the run time of the next attempt in ms, whether to stop; then the event is lost.
 */
export async function emitUntilStored(
  { publisher, clock, log }: { publisher: Pick<Publisher, 'emit'>; clock: Clock; log: Log },
  event: SandboxEvent,
  givesUp: (retry_at_ms: number) => boolean,
): Promise<void> {
  const { event_type, happened_at_ms } = event;
  const key = newId(`${event_type} `, happened_at_ms);
  for (;;) {
    try {
      await publisher.emit(event, key);
      return;
    } catch (error) {
      log.warn(
        { event_type, reason: (error as Error).message },
        'the outbox refused an event: it will be retried',
      );
      if (givesUp(runTime(clock).monotonicMs() + EMIT_RETRY_MS)) return;
      await sleep(runTime(clock), EMIT_RETRY_MS);
    }
  }
}
