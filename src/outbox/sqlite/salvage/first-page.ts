import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { emptyOutbox } from '../rows/schema.ts';

const PAGE_BYTES = 4_096;
/** SQLite's file format: where it says that a log is used, and how many pages there are. */
const PAGE_COUNT_OFFSET = 28;

/** The page that holds an outbox's header and schema: replaced by that of a new outbox, and put back. */
export class FirstPage {
  readonly #path: string;
  #replaced: Buffer | null = null;
  #size = 0;
  #was_missing = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Replaces the page; false where it is replaced already. */
  replace(): boolean {
    if (this.#replaced) return false;
    this.#was_missing = !lstatSync(this.#path, { throwIfNoEntry: false });
    const file = openSync(this.#path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    try {
      this.#size = fstatSync(file).size;
      const found = Buffer.alloc(Math.min(this.#size, PAGE_BYTES));
      readSync(file, found, 0, found.length, 0);
      const page = emptyOutbox().subarray(0, PAGE_BYTES);
      // As many pages as the file has.
      page.writeUInt32BE(0, PAGE_COUNT_OFFSET);
      writeSync(file, page, 0, page.length, 0);
      this.#replaced = found;
    } finally {
      closeSync(file);
    }
    return true;
  }

  /** Puts the page back, into the file's current name. Does nothing where it was not replaced. */
  restore(path: string): void {
    const found = this.#replaced;
    this.#replaced = null;
    if (!found) return;
    if (this.#was_missing) {
      rmSync(path, { force: true });
      return;
    }
    const file = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
    try {
      writeSync(file, found, 0, found.length, 0);
      if (this.#size < PAGE_BYTES) ftruncateSync(file, this.#size);
    } finally {
      closeSync(file);
    }
  }
}
