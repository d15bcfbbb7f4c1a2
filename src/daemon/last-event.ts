import { type Clock, runTime } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Dispatcher } from '../outbox/dispatcher.ts';
import { emitUntilStored, type Publisher } from './publisher.ts';

/** Why a sandbox ends. Source: contract section 2, `sandbox.killed`. */
export type EndReason = 'signal' | 'main_process_exited' | 'api';

/** How a sandbox ends. */
export interface Ending {
  reason: EndReason;
  /** The signal that ended the daemon; null if none did. */
  signal: string | null;
}

/** What the last event is emitted and delivered with. */
export interface LastEventParts {
  clock: Clock;
  log: Log;
  publisher: Pick<Publisher, 'emit' | 'close'>;
  dispatcher: Pick<Dispatcher, 'flush'> | null;
  /** How long the outbox may refuse the event, and then again how long deliveries are waited for. */
  grace_ms: number;
  /** The daemon's uptime in ms, read when the event is emitted. */
  uptimeMs: () => number;
}

/**
 * The step of a stop between the processes and the delivery: refuses publishes, emits `sandbox.killed`, and delivers
 * what is pending. It does nothing for a sandbox that ends without an `Ending`, as one whose start has failed.
 */
export class LastEvent {
  readonly #parts: LastEventParts;
  #ending: Ending | null = null;
  #is_hurried = false;
  #stopping: Promise<void> | null = null;

  constructor(parts: LastEventParts) {
    this.#parts = parts;
  }

  /** Says how the sandbox ends; to be called before `stop`. */
  announce(ending: Ending): void {
    this.#ending = ending;
  }

  /** From now on `stop` waits neither for a refusing outbox nor for deliveries. */
  hurry(): void {
    this.#is_hurried = true;
  }

  /** Emits the event and delivers what is pending, for up to the grace each. Idempotent. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    if (!this.#ending) return;
    const { publisher, dispatcher, grace_ms } = this.#parts;
    publisher.close();
    await this.#emit(this.#ending);
    // After a stop over the API the manager delivers what is pending.
    if (this.#is_hurried || this.#ending.reason === 'api') return;
    await dispatcher?.flush(grace_ms);
  }

  async #emit(ending: Ending): Promise<void> {
    const { clock, grace_ms, uptimeMs } = this.#parts;
    const end_ms = runTime(clock).monotonicMs() + grace_ms;
    const payload = { ...ending, uptime_ms: uptimeMs() };
    const event = { event_type: 'sandbox.killed' as const, happened_at_ms: clock.wallMs(), payload };
    await emitUntilStored(this.#parts, event, (retry_at_ms) => retry_at_ms > end_ms || this.#is_hurried);
  }
}
