import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Timer } from '../../base/clock.ts';
import { makeFolder } from '../../base/folder.ts';
import { makeRecord } from '../record.ts';
import { makePipes } from './pipes.ts';

/** Folders made by one run of mkfifo(1): one run per process would double its start. */
const BATCH = 20;
const LOW_WATER = 8;
/** More are made when the start that took one is over: making them stops everything else for as long as it. */
const REFILL_DELAY_MS = 50;

/**
 * Folders of processes with their pipes and an empty record, made ahead of need in `folder`: to make a file can take
 * longer than all else at a start. Who takes one moves it to where it is used.
 *
 * The pool's own folder holds nothing of value: it is emptied at `open`.
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

  async open(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    await makeFolder(this.#folder);
  }

  /** Gives a folder with pipes to the caller. Throws where none can be made. */
  async take(): Promise<string> {
    while (this.#ready.length === 0) await this.#make();
    const folder = this.#ready.pop() as string;
    if (this.#ready.length < LOW_WATER) this.#refillSoon();
    return folder;
  }

  close(): void {
    this.#refill?.cancel();
  }

  #refillSoon(): void {
    this.#refill ??= this.#clock.after(REFILL_DELAY_MS, () => {
      this.#refill = null;
      this.#make().catch(() => {}); // whoever finds none tries again and is told
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
