import type { Clock, Timer } from '../../base/clock.ts';
import type { ToWriter } from './protocol.ts';
import type { Writer } from './writer.ts';

/** How long until outcomes that could not be recorded are tried again. */
const RETRY_MS = 1_000;

/** Runs a writer: passes on messages, retries outcomes that could not be recorded, and writes the log back when idle. */
export class WriterRunner {
  readonly writer: Writer;
  readonly #clock: Clock;
  #retry: Timer | null = null;
  #write_back: NodeJS.Immediate | null = null;

  constructor(writer: Writer, clock: Clock) {
    this.writer = writer;
    this.#clock = clock;
  }

  /** Handles messages, and everything that waits. */
  handle(messages: ToWriter[]): void {
    this.stop();
    this.writer.handle(messages);
    if (this.writer.has_unrecorded) this.#retry = this.#clock.after(RETRY_MS, () => this.handle([]));
    // After the messages that have arrived by then.
    if (this.writer.is_write_back_due) this.#write_back = setImmediate(() => this.writer.writeBack());
  }

  /** Cancels what is scheduled. `handle` schedules it again. */
  stop(): void {
    this.#retry?.cancel();
    this.#retry = null;
    if (this.#write_back) clearImmediate(this.#write_back);
    this.#write_back = null;
  }
}
