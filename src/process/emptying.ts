import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { ApiError } from '../contract/errors.ts';
import { endAll } from './end-all.ts';
import type { ProcessPause } from './pausing.ts';
import type { ProcessRegistry } from './registry.ts';
import type { Launcher } from './start/launcher.ts';
import type { TreeFinder } from './tree/tree.ts';

const NO_STARTS = 'The processes of the sandbox are being ended.';

/** What Emptying works with. */
export interface EmptyingParts {
  /** The time from SIGTERM to SIGKILL is its grace. */
  options: { clock: Clock; log: Log; grace_ms: number };
  pause: ProcessPause;
  launcher: Launcher;
  registry: ProcessRegistry;
  trees: TreeFinder;
}

/** Pauses and resumes all processes, or ends them where nothing of them is to be kept. */
export class Emptying {
  readonly #parts: EmptyingParts;
  #is_emptying = false;

  constructor(parts: EmptyingParts) {
    this.#parts = parts;
  }

  /** Throws `conflict` while every process is being ended. */
  checkMayStart(): void {
    if (this.#is_emptying) throw new ApiError('conflict', NO_STARTS);
  }

  /**
   * Stops every tree, including sessions that descendants made. Idempotent. Without `memory` every process is ended first,
   * SIGTERM first and SIGKILL after the grace; then there is nothing to resume.
   */
  async pause(memory: boolean): Promise<void> {
    const { pause } = this.#parts;
    if (memory || pause.is_paused) return pause.pause();
    await this.#emptying(async () => {
      await this.#endAll();
      await pause.pause();
    });
  }

  /** Resumes every tree. Idempotent. Without `memory` everything that was paused is then ended, as by a pause without it. */
  async resume(memory: boolean): Promise<void> {
    const { pause } = this.#parts;
    if (memory || !pause.is_paused) return pause.resume();
    await this.#emptying(async () => {
      await pause.resume();
      await this.#endAll();
    });
  }

  /** Lets no process start during `work`. */
  async #emptying(work: () => Promise<void>): Promise<void> {
    this.#is_emptying = true;
    try {
      await work();
    } finally {
      this.#is_emptying = false;
    }
  }

  async #endAll(): Promise<void> {
    const { options, launcher, registry, trees } = this.#parts;
    const leaveAlone = launcher.giveUpSoon(new ApiError('conflict', NO_STARTS));
    const processes = await registry.started();
    leaveAlone();
    await endAll(options, trees, processes);
  }
}
