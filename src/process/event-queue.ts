import { type Clock, sleep } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { type Backoff, backoffMs } from '../contract/backoff.ts';
import {
  PROCESS_EVENT_RETRY_CAP_MS,
  PROCESS_EVENT_RETRY_MS,
  PROCESS_EVENTS_WAITING_MAX,
  PROCESS_EVENTS_WAITING_MAX_BYTES,
} from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { ProcessEvent } from '../contract/events.ts';
import type { UnsentEvent } from './record.ts';

const RETRY_AFTER_S = 1;
const BACKOFF: Backoff = { base_ms: PROCESS_EVENT_RETRY_MS, max_ms: PROCESS_EVENT_RETRY_CAP_MS };

/** What an event takes in memory in addition to its previews. */
const EVENT_COST_BYTES = 1024;
/** The most memory that a character takes. */
const CHARACTER_BYTES = 2;

/** Stores an event durably. `key` names the event, also when it is emitted again after a crash. Rejects if it is not stored. */
export type Emit = (event: ProcessEvent, key: string) => Promise<void>;

/** The events of all processes that wait for durable storage. */
export class WaitingEvents {
  #bytes = 0;

  /** What they take in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether there are so many that no process should start: each start and each end adds one. */
  get is_full(): boolean {
    return this.#bytes >= PROCESS_EVENTS_WAITING_MAX_BYTES;
  }

  /** Throws `outbox_full` where no process should start. */
  checkRoom(): void {
    if (!this.is_full) return;
    const message = 'Too many events of processes wait for the outbox: no process can be started right now.';
    throw new ApiError('outbox_full', message, { retry_after_s: RETRY_AFTER_S });
  }

  /** Counts an event. */
  add({ event }: UnsentEvent): void {
    this.#bytes += costOf(event);
  }

  /** Counts an event no longer. */
  remove({ event }: UnsentEvent): void {
    this.#bytes -= costOf(event);
  }
}

function costOf({ payload }: ProcessEvent): number {
  const previews = 'stdout_preview' in payload ? [payload.stdout_preview, payload.stderr_preview] : [];
  return previews.reduce((sum, text) => sum + text.length * CHARACTER_BYTES, EVENT_COST_BYTES);
}

/** What the events of a process need. */
export interface EventQueueParts {
  clock: Clock;
  log: Log;
  emit: Emit;
  waiting: WaitingEvents;
  /** Called after each event that was stored and removed from the list. */
  onStored: () => void;
}

/**
 * The events of one process on their way to durable storage: one after the other, each repeated until it is stored.
 * The list is part of the process's record, so the next daemon emits what this one has not stored.
 */
export class EventQueue {
  readonly #parts: EventQueueParts;
  readonly #unsent: UnsentEvent[];
  #sending: Promise<void> | null = null;

  constructor(parts: EventQueueParts, unsent: UnsentEvent[]) {
    this.#parts = parts;
    this.#unsent = unsent;
    for (const each of unsent) parts.waiting.add(each);
  }

  /** Whether so many events wait, of this process or of all, that it should not be restarted. */
  get is_full(): boolean {
    return this.#unsent.length > PROCESS_EVENTS_WAITING_MAX || this.#parts.waiting.is_full;
  }

  /** Adds an event, which `send` sends. */
  add(unsent: UnsentEvent): void {
    this.#unsent.push(unsent);
    this.#parts.waiting.add(unsent);
  }

  /** Starts to send the list, unless it is being sent. */
  send(): void {
    if (this.#unsent.length > 0) this.#sending ??= this.#sendAll();
  }

  /** Resolves when the list is empty. */
  async flush(): Promise<void> {
    while (this.#unsent.length > 0) {
      this.send();
      await this.#sending;
    }
  }

  async #sendAll(): Promise<void> {
    const { clock, log, emit, waiting, onStored } = this.#parts;
    for (let failures = 0; this.#unsent.length > 0; ) {
      const first = this.#unsent[0] as UnsentEvent;
      try {
        await emit(first.event, first.key);
      } catch (error) {
        if (failures++ === 0)
          log.warn(
            { err: error, event_type: first.event.event_type },
            'an event could not be stored: it will be retried',
          );
        await sleep(clock, backoffMs(failures, BACKOFF));
        continue;
      }
      failures = 0;
      this.#unsent.shift();
      waiting.remove(first);
      onStored();
    }
    this.#sending = null;
  }
}
