import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../base/folder.ts';

/** Pipes made by one run of mkfifo(1): Node cannot make one, and one run per process would double its start. */
const BATCH = 64;
const LOW_WATER = 24;

/**
 * Named pipes, made ahead of need in `folder`.
 *
 * The folder holds nothing of value: it is emptied at `open`. A pipe that is taken is moved to where it is used.
 */
export class PipePool {
  readonly #folder: string;
  #ready: string[] = [];
  #made = 0;
  #making: Promise<void> | null = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async open(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    await makeFolder(this.#folder);
  }

  /** Moves a new pipe to `path`, in place of what is there. */
  async take(path: string): Promise<void> {
    while (this.#ready.length === 0) await this.#make();
    const pipe = this.#ready.pop() as string;
    if (this.#ready.length < LOW_WATER) this.#make().catch(() => {}); // whoever finds none tries again and is told
    await rename(pipe, path);
  }

  #make(): Promise<void> {
    this.#making ??= this.#makeBatch().finally(() => {
      this.#making = null;
    });
    return this.#making;
  }

  async #makeBatch(): Promise<void> {
    const batch = Array.from({ length: BATCH }, () => join(this.#folder, String(this.#made++)));
    const { execa } = await import('execa');
    await execa('mkfifo', ['-m', '600', ...batch], { extendEnv: false });
    this.#ready.push(...batch);
  }
}
