import { type Clock, sleep } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { PROCESS_EVENT_RETRY_CAP_MS, PROCESS_EVENT_RETRY_MS } from '../contract/defaults.ts';
import type { ProcessEvent } from '../contract/events.ts';
import type { UnsentEvent } from './record.ts';

/** Stores an event durably; `key` is the same for the same event also when it is emitted anew after a crash. */
export type Emit = (event: ProcessEvent, key: string) => Promise<void>;

/**
 * The events of one process on their way to durable storage: one after the other, each until it is stored.
 * The list belongs to the process's record, so what is not stored when the daemon ends is emitted by the next.
 */
export class EventQueue {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #emit: Emit;
  readonly #unsent: UnsentEvent[];
  readonly #stored: () => void;
  #sending: Promise<void> | null = null;

  /** `stored` is called after each event that was stored and taken off the list. */
  constructor(clock: Clock, log: Log, emit: Emit, unsent: UnsentEvent[], stored: () => void) {
    this.#clock = clock;
    this.#log = log;
    this.#emit = emit;
    this.#unsent = unsent;
    this.#stored = stored;
  }

  /** How many events wait. */
  get length(): number {
    return this.#unsent.length;
  }

  /** Starts sending what is in the list, if it is not being sent. */
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
          this.#log.warn({ err: error, event_type: event.event_type }, 'event not stored, trying again');
        await sleep(
          this.#clock,
          Math.min(PROCESS_EVENT_RETRY_CAP_MS, PROCESS_EVENT_RETRY_MS * 2 ** (failures - 1)),
        );
        continue;
      }
      failures = 0;
      this.#unsent.shift();
      this.#stored();
    }
    this.#sending = null;
  }
}
