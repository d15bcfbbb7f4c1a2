import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { SandboxEvent } from '../contract/events.ts';
import type { Dispatcher } from '../outbox/dispatcher.ts';
import type { OutboxClient } from '../outbox/sqlite/client.ts';
import type { Supervisor } from '../process/supervisor.ts';
import type { Watcher } from '../watch/thread/watcher.ts';
import type { Publisher } from './publisher.ts';

/** The delay before an event that takes back a change is retried. */
const TAKE_BACK_RETRY_MS = 1_000;
/** The name of the outbox's copy in the state directory. */
const OUTBOX_COPY = 'outbox-copy.db';

/** What a pause switch acts on. */
export interface PauseSwitchParts {
  clock: Clock;
  state_dir: string;
  store: Pick<OutboxClient, 'checkpoint' | 'copyTo'>;
  publisher: Pick<Publisher, 'emit'>;
  supervisor: Pick<Supervisor, 'pause' | 'resume' | 'usage'>;
  dispatcher: Pick<Dispatcher, 'start' | 'flush' | 'pause'> | null;
  watcher: Pick<Watcher, 'reconcile'> | null;
  /** Called when a change of the daemon's stage begins, succeeds or fails. */
  onStage: (stage: 'running' | 'pausing' | 'paused') => void;
}

/**
 * Pauses, resumes and quiesces the sandbox, one change at a time. The stages are those of DaemonState.
 * Source: contract section 4, POST `/sandbox/pause` and `/sandbox/resume`; `quiesce` is for a fork (section 7).
 *
 * | from | by | to | event |
 * |---|---|---|---|
 * | running | `pause` | paused | `sandbox.paused`; without its commit the trees run again, if they were not ended |
 * | paused | `resume` | running | `sandbox.resumed`; without its commit the trees are paused again, if they were not ended |
 * | either | `quiesce` | the same, once `work` has ended, which the next `pause` or `resume` tells to end | none |
 */
export class PauseSwitch {
  readonly #parts: PauseSwitchParts;
  #paused_at_ms: number | null = null;
  /** Whether the present or next pause keeps the processes. */
  #keeps_memory = true;
  #changing: Promise<void> = Promise.resolve();
  /** Tells the work of `quiesce` to end: whoever asks for it may stand still, and not know that it has lost the sandbox. */
  #quiescing = new AbortController();
  /** An undone change whose event, with this key, may have been stored; and the event that takes it back. */
  #undone: { key: string; event: SandboxEvent } | null = null;

  constructor(parts: PauseSwitchParts) {
    this.#parts = parts;
  }

  /** Whether the sandbox is paused; false while it is only quiesced. */
  get is_paused(): boolean {
    return this.#paused_at_ms !== null;
  }

  /**
   * Freezes every process tree, emits `sandbox.paused`, delivers pending records for up to `flush_ms`, and stops the
   * delivery. Without `memory` it ends every process instead, and goes on delivering. Resolves with whether the pause keeps
   * the processes. Idempotent. Throws `outbox_full` or `outbox_unavailable`; then the sandbox runs, with what is left.
   */
  async pause(reason: string | null, flush_ms: number, memory = true): Promise<boolean> {
    this.#quiescing.abort();
    await this.#exclusively(() => this.#pause(reason, flush_ms, memory));
    return this.#keeps_memory;
  }

  /**
   * Resumes processes and delivery and emits `sandbox.resumed`. Without `memory` it ends what the pause has kept. Resolves
   * with whether the processes of before the pause were kept. Idempotent. Throws as `pause` does.
   */
  async resume(reason: string | null, memory = true): Promise<boolean> {
    this.#quiescing.abort();
    await this.#exclusively(() => this.#resume(reason, memory));
    return this.#keeps_memory;
  }

  /**
   * Freezes every process tree during `work`, without an event, with a consistent copy of the outbox beside it: the whole
   * root file system can then be copied, with that copy in place of the outbox. A paused sandbox stays paused. `work` has
   * to end with its signal.
   */
  quiesce(work: (over: AbortSignal) => Promise<void>): Promise<void> {
    return this.#exclusively(async () => {
      const { store, state_dir, supervisor } = this.#parts;
      this.#quiescing = new AbortController();
      const { signal } = this.#quiescing;
      if (this.is_paused) return withOutboxCopy(store, state_dir, () => work(signal));
      await supervisor.pause();
      try {
        await withOutboxCopy(store, state_dir, () => work(signal));
      } finally {
        await supervisor.resume();
      }
    });
  }

  async #pause(reason: string | null, flush_ms: number, memory: boolean): Promise<void> {
    if (this.is_paused) return;
    const { clock, store, dispatcher, onStage } = this.#parts;
    await this.#takeBack();
    onStage('pausing');
    this.#keeps_memory = memory;
    try {
      await this.#freeze(reason);
    } catch (error) {
      onStage('running');
      throw error;
    }
    this.#paused_at_ms = clock.monotonicMs();
    onStage('paused');
    if (memory) {
      await dispatcher?.flush(flush_ms);
      dispatcher?.pause();
    }
    await store.checkpoint();
  }

  async #freeze(reason: string | null): Promise<void> {
    const { clock, supervisor } = this.#parts;
    const began_ms = clock.monotonicMs();
    await supervisor.pause(this.#keeps_memory);
    await this.#emitOrUndo(
      () => this.#pausedEvent(reason),
      async () => {
        await supervisor.resume();
        return this.#resumedEvent(reason, began_ms);
      },
    );
  }

  async #resume(reason: string | null, memory: boolean): Promise<void> {
    if (this.#paused_at_ms === null) return;
    const { supervisor, dispatcher, watcher, onStage } = this.#parts;
    await this.#takeBack();
    const paused_at_ms = this.#paused_at_ms;
    this.#keeps_memory &&= memory;
    await supervisor.resume(memory);
    await this.#emitOrUndo(
      async () => this.#resumedEvent(reason, paused_at_ms),
      async () => {
        await supervisor.pause();
        return this.#pausedEvent(reason);
      },
    );
    this.#paused_at_ms = null;
    onStage('running');
    await dispatcher?.start();
    void watcher?.reconcile('resume');
  }

  async #pausedEvent(reason: string | null): Promise<SandboxEvent> {
    const { clock, supervisor } = this.#parts;
    const payload = { reason, resource_usage: await supervisor.usage() };
    return { event_type: 'sandbox.paused', happened_at_ms: clock.wallMs(), payload };
  }

  #resumedEvent(reason: string | null, paused_at_ms: number): SandboxEvent {
    const { clock } = this.#parts;
    const payload = { reason, paused_ms: Math.round(clock.monotonicMs() - paused_at_ms) };
    return { event_type: 'sandbox.resumed', happened_at_ms: clock.wallMs(), payload };
  }

  /**
   * Emits the event of a change. If that fails, `undo` reverts the change and returns the opposite event: the first one
   * may have been stored without an acknowledgement, and then the other must follow it.
   */
  async #emitOrUndo(event: () => Promise<SandboxEvent>, undo: () => Promise<SandboxEvent>): Promise<void> {
    const { clock, publisher } = this.#parts;
    const key = newId('sandbox.change ', clock.wallMs());
    try {
      await publisher.emit(await event(), key);
    } catch (error) {
      this.#undone = { key, event: await undo() };
      this.#takeBackLater();
      throw error;
    }
  }

  /** Emits the opposite event of an undone change, if the change's own event was stored. */
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

/** Runs `work` while a consistent copy of the outbox is in the state directory, for a fork to take. */
export async function withOutboxCopy(
  store: Pick<OutboxClient, 'copyTo'>,
  state_dir: string,
  work: () => Promise<void>,
): Promise<void> {
  const copy = join(state_dir, OUTBOX_COPY);
  try {
    await store.copyTo(copy);
    await work();
  } finally {
    rmSync(copy, { force: true });
  }
}
