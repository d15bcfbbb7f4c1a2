import { closeSync, openSync, statfsSync, statSync, truncateSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const STEP_BYTES = 2 * 1024 * 1024;
const STEPS = 4;
/** The ballast is only written while this much more space stays free. */
const LEFT_BYTES = 4 * STEPS * STEP_BYTES;

/**
 * Reserved disk space: a file beside the database that is shrunk step by step when the disk is full, so that the
 * deletions that free more space can still be committed.
 */
export class Ballast {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Restores the full reserve if the disk has enough space. Throws the system error if the file cannot be written. */
  keep(): void {
    const { bavail, bsize } = statfsSync(dirname(this.#path));
    if (this.#size() === STEPS * STEP_BYTES || bavail * bsize < LEFT_BYTES) return;
    const file = openSync(this.#path, 'w', 0o600);
    try {
      const step = Buffer.alloc(STEP_BYTES);
      for (let i = 0; i < STEPS; i++) writeSync(file, step);
    } finally {
      closeSync(file);
    }
  }

  /** Releases one step of the reserve; returns false if none is left. */
  use(): boolean {
    const size_bytes = this.#size();
    if (size_bytes === 0) return false;
    truncateSync(this.#path, Math.max(0, size_bytes - STEP_BYTES));
    return true;
  }

  #size(): number {
    return statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
  }
}
