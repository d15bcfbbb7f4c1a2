import type { Clock } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { SandboxEvent } from '../contract/events.ts';
import type { Dispatcher } from '../outbox/dispatcher.ts';
import type { OutboxClient } from '../outbox/sqlite/client.ts';
import type { Supervisor } from '../process/supervisor.ts';
import type { Watcher } from '../watch/thread/watcher.ts';
import type { Publisher } from './publisher.ts';

/** How long until an event that takes a change back is offered again. */
const TAKE_BACK_RETRY_MS = 1_000;

interface Parts {
  clock: Clock;
  store: OutboxClient;
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
  /** A change that was undone although its event, of this key, may be kept; and the event that takes it back. */
  #undone: { key: string; event: SandboxEvent } | null = null;

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
    const { clock, store, supervisor, dispatcher } = this.#parts;
    await this.#takeBack();
    const began_ms = clock.monotonicMs();
    await supervisor.pause();
    await this.#tell(
      () => this.#paused(reason),
      async () => {
        await supervisor.resume();
        return this.#resumed(reason, began_ms);
      },
    );
    this.#paused_at_ms = clock.monotonicMs();
    await dispatcher?.flush(flush_ms);
    dispatcher?.pause();
    await store.checkpoint();
  }

  async #resume(reason: string | null): Promise<void> {
    if (this.#paused_at_ms === null) return;
    const { supervisor, dispatcher, watcher } = this.#parts;
    await this.#takeBack();
    const paused_at_ms = this.#paused_at_ms;
    await supervisor.resume();
    await this.#tell(
      async () => this.#resumed(reason, paused_at_ms),
      async () => {
        await supervisor.pause();
        return this.#paused(reason);
      },
    );
    this.#paused_at_ms = null;
    await dispatcher?.start();
    void watcher?.reconcile('resume');
  }

  async #paused(reason: string | null): Promise<SandboxEvent> {
    const { clock, supervisor } = this.#parts;
    const payload = { reason, resource_usage: await supervisor.usage() };
    return { event_type: 'sandbox.paused', happened_at_ms: clock.wallMs(), payload };
  }

  #resumed(reason: string | null, paused_at_ms: number): SandboxEvent {
    const { clock } = this.#parts;
    const payload = { reason, paused_ms: Math.round(clock.monotonicMs() - paused_at_ms) };
    return { event_type: 'sandbox.resumed', happened_at_ms: clock.wallMs(), payload };
  }

  /**
   * Tells of a change. Where that fails the change is undone, which `undo` does and returns the event of. An event that
   * was not acknowledged may be kept all the same: then the other follows it, as soon as the outbox takes it.
   */
  async #tell(event: () => Promise<SandboxEvent>, undo: () => Promise<SandboxEvent>): Promise<void> {
    const { clock, publisher } = this.#parts;
    const key = newId('change ', clock.wallMs());
    try {
      await publisher.emit(await event(), key);
    } catch (error) {
      this.#undone = { key, event: await undo() };
      this.#takeBackLater();
      throw error;
    }
  }

  /** Tells of what was undone, if the event of what it undoes is kept. */
  async #takeBack(): Promise<void> {
    if (!this.#undone) return;
    const { key, event } = this.#undone;
    await this.#parts.publisher.emit(event, `${key} undone`, key);
    this.#undone = null;
  }

  #takeBackLater(): void {
    this.#parts.clock.after(TAKE_BACK_RETRY_MS, () => {
      this.#exclusively(() => this.#takeBack()).catch(() => this.#takeBackLater());
    });
  }

  #exclusively(change: () => Promise<void>): Promise<void> {
    const result = this.#changing.then(change);
    this.#changing = result.catch(() => {});
    return result;
  }
}
