import { ApiError } from '../contract/errors.ts';
import type { SupervisedProcess } from './process.ts';
import type { ProcessRegistry } from './registry.ts';
import type { Launcher } from './start/launcher.ts';
import type { Freezer } from './tree/freezer.ts';

/** Pauses and resumes every supervised process, one request after the other. */
export class ProcessPause {
  readonly #freezer: Freezer;
  readonly #registry: ProcessRegistry;
  readonly #launcher: Launcher;
  readonly #isStopping: () => boolean;
  #is_paused = false;
  #last: Promise<void> = Promise.resolve();

  /** `isStopping`: whether the supervisor is being stopped; then nothing is paused any more. */
  constructor(freezer: Freezer, registry: ProcessRegistry, launcher: Launcher, isStopping: () => boolean) {
    this.#freezer = freezer;
    this.#registry = registry;
    this.#launcher = launcher;
    this.#isStopping = isStopping;
  }

  /** Whether a pause has begun and has not been resumed. */
  get is_paused(): boolean {
    return this.#is_paused;
  }

  /** Stops every tree, including sessions that descendants made. Idempotent. */
  pause(): Promise<void> {
    return this.#inOrder(() => this.#pause());
  }

  /** Resumes every tree. Idempotent. */
  resume(): Promise<void> {
    return this.#inOrder(() => this.#resume());
  }

  /** Resumes recovered trees that an earlier daemon stopped. */
  async releaseStopped(recovered: readonly SupervisedProcess[]): Promise<void> {
    const stopped = recovered.filter(({ record }) => record.is_stopped);
    if (stopped.length === 0) return;
    await this.#freezer.release(stopped.map(({ root }) => root));
    await this.#noteStopped(stopped, false);
  }

  #inOrder(step: () => Promise<void>): Promise<void> {
    const done = this.#last.then(step);
    this.#last = done.catch(() => {});
    return done;
  }

  async #pause(): Promise<void> {
    if (this.#is_paused || this.#isStopping()) return;
    this.#is_paused = true;
    const leaveAlone = this.#launcher.giveUpSoon(new ApiError('conflict', 'The sandbox is paused.'));
    const processes = await this.#registry.started();
    leaveAlone();
    for (const process of processes) process.timers.pause();
    try {
      await this.#freezer.freeze(processes.map(({ root }) => root));
    } catch (error) {
      await this.#resume(); // the caller takes this pause for failed and will not resume what was stopped
      throw error;
    }
    await this.#noteStopped(processes, true);
  }

  async #resume(): Promise<void> {
    if (!this.#is_paused) return;
    await this.#freezer.thaw();
    this.#is_paused = false;
    const processes = this.#registry.all();
    for (const process of processes) process.timers.resume();
    await this.#noteStopped(processes, false);
  }

  /** Notes it in the records, so that the next daemon can resume the trees if this one is killed. */
  async #noteStopped(processes: readonly SupervisedProcess[], is_stopped: boolean): Promise<void> {
    const live = processes.filter(({ is_idle }) => !is_idle);
    for (const { record, output } of live) {
      record.is_stopped = is_stopped;
      output.changes.notify();
    }
    await Promise.allSettled(live.map((process) => process.save()));
  }
}
