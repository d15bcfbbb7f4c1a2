import { closeSync, openSync, statfsSync, statSync, truncateSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const STEP_BYTES = 2 * 1024 * 1024;
const STEPS = 4;
/** It is made where this is left beside it. */
const LEFT_BYTES = 4 * STEPS * STEP_BYTES;

/**
 * Room on the disk that is kept for what frees more of it: a file beside the database that a deletion may use up, step
 * by step, when the disk is full.
 */
export class Ballast {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Makes it whole again where there is room. */
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

  /** Gives a step of it back to the disk; false where nothing is left. */
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
