import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { atMost, runTime } from '../base/clock.ts';
import { PROCESSES_LIVE_MAX } from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { ProcessContext } from './context.ts';
import { SupervisedProcess } from './process.ts';
import { isMarkedOver, removeFolder } from './record-file.ts';
import { recoverRecord } from './recovery.ts';
import type { ProcessRegistry } from './registry.ts';

/** After so many recovered processes, those that are not kept any longer are removed. */
const PORTION = 100;
/** A daemon leaves no more live processes: what is there beyond that was put there, and waits. */
const LOOKED_AT_MAX = 2 * PROCESSES_LIVE_MAX;

/** How long a list waits for them: within the time of a request. */
const WAIT_MS = 5_000;
const RETRY_AFTER_S = 1;

/** What is recovered, and where to. */
export interface LeftTarget {
  directory: string;
  context: () => ProcessContext;
  registry: ProcessRegistry;
  /** Called with processes that run on, or wait for a restart. */
  onLive: (processes: readonly SupervisedProcess[]) => Promise<void>;
  /** Removes ended processes that are not kept any longer. */
  sweep: () => Promise<void>;
}

/**
 * The processes that an earlier daemon left: running ones, those that wait for a restart, and ended ones with their
 * output. Live ones are taken over before the daemon is ready. Ended ones may be many and large, so they are read
 * afterwards, one after another, or when they are asked for; until then nothing of them is in memory but their ids.
 */
export class LeftProcesses {
  readonly #target: LeftTarget;
  /** Ids of those that have ended and were not read yet. */
  readonly #ended = new Set<string>();
  /** Ids of those that could not be read. */
  readonly #unread = new Set<string>();
  /** Those that are being read, by id. */
  readonly #reading = new Map<string, Promise<SupervisedProcess | null>>();
  #all: Promise<void> = Promise.resolve();
  #is_stopped = false;

  constructor(target: LeftTarget) {
    this.#target = target;
  }

  /** Whether a process with this id was left and is not known yet, although it has ended. */
  has(process_id: string): boolean {
    return this.#ended.has(process_id) || this.#reading.has(process_id);
  }

  /** Whether what was left under this id could not be read. */
  isUnread(process_id: string): boolean {
    return this.#unread.has(process_id);
  }

  /** Takes over the live processes. The ended ones follow in the background. Throws the system's error. */
  async recover(): Promise<void> {
    const live: string[] = [];
    for (const [index, name] of (await readdir(this.#target.directory)).entries()) {
      const folder = join(this.#target.directory, name);
      if (index >= LOOKED_AT_MAX || (await isMarkedOver(folder))) this.#ended.add(name);
      else live.push(name);
    }
    await this.#recoverLive(live);
    this.#all = this.#recoverEnded();
  }

  /** Tries those again that could not be read. */
  async retry(): Promise<void> {
    await this.#recoverLive([...this.#unread]);
  }

  /** Resolves when the process with this id is known, if one was left. */
  async known(process_id: string): Promise<void> {
    if (this.has(process_id)) await this.#readEnded(process_id);
  }

  /** Resolves when all that can be read is known, or after 5 s; gives which. */
  async allKnown(): Promise<boolean> {
    if (this.#is_known) return true;
    await atMost(runTime(this.#target.context().clock), WAIT_MS, this.#all);
    return this.#is_known;
  }

  /** Reads no more. Resolves when nothing is being read. */
  async stop(): Promise<void> {
    this.#is_stopped = true;
    await this.#all;
    await Promise.all(this.#reading.values());
  }

  get #is_known(): boolean {
    return this.#ended.size === 0 && this.#reading.size === 0;
  }

  async #recoverLive(names: readonly string[]): Promise<void> {
    const recovered: SupervisedProcess[] = [];
    for (const name of names) {
      const process = await this.#read(name);
      if (process) recovered.push(process);
    }
    await this.#target.onLive(recovered);
  }

  async #recoverEnded(): Promise<void> {
    let count = 0;
    for (const name of this.#ended) {
      if (this.#is_stopped) return;
      await this.#readEnded(name);
      count += 1;
      if (count % PORTION === 0) await this.#target.sweep();
    }
    if (count > 0) await this.#target.sweep();
  }

  async #readEnded(name: string): Promise<void> {
    let reading = this.#reading.get(name);
    if (!reading) {
      reading = this.#read(name).finally(() => this.#reading.delete(name));
      this.#reading.set(name, reading);
      this.#ended.delete(name);
    }
    const process = await reading;
    // One that only looked as if it had ended, after a power cut.
    if (process && !process.record.is_final) await this.#target.onLive([process]);
  }

  /**
   * Takes over the process in this folder; null if there is none, or if it cannot be read now: that is logged, and does
   * not affect the others. A folder without a valid record is removed. Never rejects.
   */
  async #read(name: string): Promise<SupervisedProcess | null> {
    const { directory, registry } = this.#target;
    const context = this.#target.context();
    const folder = join(directory, name);
    try {
      const stored = await recoverRecord(context, folder);
      const process = stored && (await SupervisedProcess.recover(context, folder, stored));
      if (process) registry.addRecovered(process);
      else await removeFolder(folder);
      this.#unread.delete(name);
      return process;
    } catch (error) {
      const message = 'a process cannot be recovered right now: it will be retried';
      context.log.error({ err: error, process_id: name }, message);
      this.#unread.add(name);
      return null;
    }
  }
}

/** The error for a list of processes while they are still being read. */
export function stillReading(): ApiError {
  const message = 'The processes of the last daemon are still being read.';
  return new ApiError('outbox_unavailable', message, { retry_after_s: RETRY_AFTER_S });
}

/** The error for an id under which something was left that cannot be read. */
export function unreadError(process_id: string): ApiError {
  return new ApiError('outbox_unavailable', `The record of ${process_id} cannot be read right now.`);
}
