import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Timer } from '../../base/clock.ts';
import { makeFolder } from '../../base/folder.ts';
import { makeRecord } from '../record.ts';
import { makePipes } from './pipes.ts';

/** Folders made by one run of mkfifo(1): one run per process would double its start. */
const BATCH = 20;
const LOW_WATER = 8;
/** The pool is refilled after the start that took a folder, since creating folders would delay that start. */
const REFILL_DELAY_MS = 50;

/**
 * Folders of processes with their pipes and an empty record, made in advance in `folder`: creating files can take
 * longer than the rest of a start. The caller of `take` moves the folder to its place.
 *
 * The pool's own folder holds nothing of value: it is emptied by `open`.
 */
export class FolderPool {
  readonly #clock: Clock;
  readonly #folder: string;
  readonly #ready: string[] = [];
  #made = 0;
  #making: Promise<void> | null = null;
  #refill: Timer | null = null;

  constructor(clock: Clock, folder: string) {
    this.#clock = clock;
    this.#folder = folder;
  }

  /** Empties the pool's folder. Throws the system's error. */
  async open(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    await makeFolder(this.#folder);
  }

  /** Gives a folder with pipes to the caller. Throws the system's error if none can be made. */
  async take(): Promise<string> {
    while (this.#ready.length === 0) await this.#make();
    const folder = this.#ready.pop() as string;
    if (this.#ready.length < LOW_WATER) this.#refillSoon();
    return folder;
  }

  /** Cancels the refill that is due. */
  close(): void {
    this.#refill?.cancel();
  }

  #refillSoon(): void {
    this.#refill ??= this.#clock.after(REFILL_DELAY_MS, () => {
      this.#refill = null;
      this.#make().catch(() => {}); // `take` tries again and throws
    });
  }

  #make(): Promise<void> {
    this.#making ??= this.#makeBatch().finally(() => {
      this.#making = null;
    });
    return this.#making;
  }

  async #makeBatch(): Promise<void> {
    const batch = Array.from({ length: BATCH }, () => join(this.#folder, String(this.#made++)));
    await Promise.all(batch.map((folder) => mkdir(folder, { mode: 0o700 })));
    await Promise.all([makePipes(batch), ...batch.map(makeRecord)]);
    this.#ready.push(...batch);
  }
}
