import type { Clock, Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import {
  ENDED_PROCESSES_MAX,
  ENDED_PROCESSES_MAX_BYTES,
  ENDED_PROCESSES_RETAIN_MS,
} from '../contract/defaults.ts';
import type { OutputCopies } from './output/copies.ts';
import type { ProcessRegistry } from './registry.ts';

/** What the retention of an ended process depends on. */
export interface EndedProcess {
  process_id: string;
  exited_at_ms: number;
  size_bytes: number;
}

/**
 * The ids of ended processes that are no longer kept: those above the age, and the oldest above the number and the
 * total size.
 */
export function expiredProcesses(ended: readonly EndedProcess[], now_ms: number): string[] {
  const newest_first = [...ended].sort((a, b) => b.exited_at_ms - a.exited_at_ms);
  let kept = 0;
  let kept_bytes = 0;
  return newest_first
    .filter(({ exited_at_ms, size_bytes }) => {
      kept += 1;
      kept_bytes += size_bytes;
      const is_old = now_ms - exited_at_ms > ENDED_PROCESSES_RETAIN_MS;
      return is_old || kept > ENDED_PROCESSES_MAX || kept_bytes > ENDED_PROCESSES_MAX_BYTES;
    })
    .map(({ process_id }) => process_id);
}

const SWEEP_INTERVAL_MS = 60_000;
const SWEEP_DELAY_MS = 500;

/** What the retention works on. */
export interface RetentionTarget {
  clock: Clock;
  log: Log;
  /** From SIGTERM to SIGKILL for what an ended process left behind. */
  grace_ms: number;
  registry: ProcessRegistry;
  copies: OutputCopies;
  /** Called after each regular sweep. */
  onSweep: () => void;
}

/** Removes ended processes with their output: once a minute, and half a second after processes have ended. */
export class ProcessRetention {
  readonly #target: RetentionTarget;
  #regular: Timer | null = null;
  #soon: Timer | null = null;
  #is_stopped = false;
  /** Removals under way, by the process's id. */
  readonly #removing = new Map<string, Promise<void>>();

  constructor(target: RetentionTarget) {
    this.#target = target;
  }

  /** Starts the regular sweeps. */
  start(): void {
    this.#regular = this.#target.clock.after(SWEEP_INTERVAL_MS, () => {
      void this.sweep();
      this.start();
      this.#target.onSweep();
    });
  }

  /** Removes what is not kept any longer. Resolves when it is gone from the disk. */
  async sweep(): Promise<void> {
    if (this.#is_stopped) return;
    const { registry, clock } = this.#target;
    const idle = registry.all().filter((process) => process.is_idle);
    // What the disk refused to note as the last of them is noted now.
    for (const process of idle) if (!process.is_over) void process.save();
    const ended = idle.map((process) => ({
      process_id: process.record.process_id,
      exited_at_ms: process.record.end?.exited_at_ms ?? 0,
      size_bytes: process.size_bytes,
    }));
    const expired = expiredProcesses(ended, clock.wallMs());
    await Promise.all(expired.map((process_id) => this.#forget(process_id)));
  }

  /** Sweeps soon: once for many processes that end together, since a sweep visits all that are kept. */
  sweepSoon(): void {
    this.#soon ??= this.#target.clock.after(SWEEP_DELAY_MS, () => {
      this.#soon = null;
      void this.sweep();
    });
  }

  /** Stops all sweeps. */
  stop(): void {
    this.#is_stopped = true;
    this.#regular?.cancel();
    this.#soon?.cancel();
  }

  /** Resolves when no process with this id is being removed: one that is no longer listed still has the id, and its folder. */
  async removed(process_id: string): Promise<void> {
    await this.#removing.get(process_id);
  }

  /** Removes the process with this id, with descendants that it left behind, if it has ended. */
  async removeEnded(process_id: string): Promise<void> {
    const process = this.#target.registry.find(process_id);
    if (!process?.is_drained) return;
    await process.terminate(this.#target.grace_ms);
    await process.flushEvents();
    await process.close();
    await this.#forget(process_id);
  }

  #forget(process_id: string): Promise<void> {
    const removing = this.#remove(process_id).finally(() => this.#removing.delete(process_id));
    this.#removing.set(process_id, removing);
    return removing;
  }

  async #remove(process_id: string): Promise<void> {
    const { registry, copies, log } = this.#target;
    const process = registry.find(process_id);
    registry.unlist(process_id);
    copies.forget(process_id);
    try {
      await process?.remove();
    } catch (error) {
      log.warn({ err: error, process_id }, 'an ended process could not be removed');
    }
    registry.free(process_id); // only now: a new process must not meet the folder of the old one
  }
}
