import type { Clock } from '../base/clock.ts';
import type { Dispatcher } from '../outbox/dispatcher.ts';
import type { RemoteStore } from '../outbox/remote-store.ts';
import type { Supervisor } from '../process/supervisor.ts';
import type { Watcher } from '../watch/watcher.ts';
import type { Publisher } from './publisher.ts';

interface Parts {
  clock: Clock;
  store: RemoteStore;
  publisher: Publisher;
  supervisor: Supervisor;
  dispatcher: Dispatcher | null;
  watcher: Watcher | null;
}

/**
 * Freezes and thaws the sandbox. Changes happen one after another and are idempotent.
 * Source: contract section 4, POST `/sandbox/pause` and `/sandbox/resume`; `hold` is for a fork (section 7).
 */
export class PauseSwitch {
  readonly #parts: Parts;
  #paused_at_ms: number | null = null;
  #changing: Promise<void> = Promise.resolve();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get is_paused(): boolean {
    return this.#paused_at_ms !== null;
  }

  /** Stops every tree, tells so, gives what is pending `flush_ms` to be delivered, and delivers nothing more. */
  pause(reason: string | null, flush_ms: number): Promise<void> {
    return this.#exclusively(() => this.#pause(reason, flush_ms));
  }

  /** Lets everything go on. */
  resume(reason: string | null): Promise<void> {
    return this.#exclusively(() => this.#resume(reason));
  }

  /** Keeps every tree still while `work` goes on, and tells nobody. A sandbox that is paused stays so. */
  hold(work: () => Promise<void>): Promise<void> {
    return this.#exclusively(async () => {
      if (this.is_paused) return work();
      const { supervisor } = this.#parts;
      await supervisor.pause();
      try {
        await work();
      } finally {
        await supervisor.resume();
      }
    });
  }

  async #pause(reason: string | null, flush_ms: number): Promise<void> {
    if (this.is_paused) return;
    const { clock, store, publisher, supervisor, dispatcher } = this.#parts;
    await supervisor.pause();
    try {
      const payload = { reason, resource_usage: await supervisor.usage() };
      await publisher.emit({ event_type: 'sandbox.paused', happened_at_ms: clock.wallMs(), payload });
    } catch (error) {
      await supervisor.resume();
      throw error;
    }
    this.#paused_at_ms = clock.monotonicMs();
    await dispatcher?.flush(flush_ms);
    dispatcher?.pause();
    await store.checkpoint();
  }

  async #resume(reason: string | null): Promise<void> {
    if (this.#paused_at_ms === null) return;
    const { clock, publisher, supervisor, dispatcher, watcher } = this.#parts;
    const paused_ms = Math.round(clock.monotonicMs() - this.#paused_at_ms);
    await supervisor.resume();
    try {
      const payload = { reason, paused_ms };
      await publisher.emit({ event_type: 'sandbox.resumed', happened_at_ms: clock.wallMs(), payload });
    } catch (error) {
      await supervisor.pause();
      throw error;
    }
    this.#paused_at_ms = null;
    await dispatcher?.start();
    void watcher?.reconcile('resume');
  }

  #exclusively(change: () => Promise<void>): Promise<void> {
    const result = this.#changing.then(change);
    this.#changing = result.catch(() => {});
    return result;
  }
}
