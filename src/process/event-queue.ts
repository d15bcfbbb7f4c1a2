import { type Clock, sleep } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { type Backoff, backoffMs } from '../contract/backoff.ts';
import { PROCESS_EVENT_RETRY_CAP_MS, PROCESS_EVENT_RETRY_MS } from '../contract/defaults.ts';
import type { ProcessEvent } from '../contract/events.ts';
import type { UnsentEvent } from './record.ts';

const BACKOFF: Backoff = { base_ms: PROCESS_EVENT_RETRY_MS, max_ms: PROCESS_EVENT_RETRY_CAP_MS };

/** Stores an event durably. `key` names the event, also when it is emitted again after a crash. Rejects if it is not stored. */
export type Emit = (event: ProcessEvent, key: string) => Promise<void>;

/**
 * The events of one process on their way to durable storage: one after the other, each repeated until it is stored.
 * The list is part of the process's record, so the next daemon emits what this one has not stored.
 */
export class EventQueue {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #emit: Emit;
  readonly #unsent: UnsentEvent[];
  readonly #onStored: () => void;
  #sending: Promise<void> | null = null;

  /** `onStored` is called after each event that was stored and removed from the list. */
  constructor(clock: Clock, log: Log, emit: Emit, unsent: UnsentEvent[], onStored: () => void) {
    this.#clock = clock;
    this.#log = log;
    this.#emit = emit;
    this.#unsent = unsent;
    this.#onStored = onStored;
  }

  /** The number of events that are not stored. */
  get length(): number {
    return this.#unsent.length;
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
    for (let failures = 0; this.#unsent.length > 0; ) {
      const { event, key } = this.#unsent[0] as UnsentEvent;
      try {
        await this.#emit(event, key);
      } catch (error) {
        if (failures++ === 0)
          this.#log.warn(
            { err: error, event_type: event.event_type },
            'an event could not be stored: it will be retried',
          );
        await sleep(this.#clock, backoffMs(failures, BACKOFF));
        continue;
      }
      failures = 0;
      this.#unsent.shift();
      this.#onStored();
    }
    this.#sending = null;
  }
}
