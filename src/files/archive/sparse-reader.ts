import type { FieldError } from '../../contract/errors.ts';
import type { BytePath } from '../byte-path.ts';
import { invalidEntry } from './archive-entries.ts';
import { BLOCK_BYTES } from './tar-header.ts';

/** The longest map that is read: a part takes some twenty bytes of it. */
const MAP_MAX_BYTES = 1024 * 1024;

/** A piece of data and its place in the file. */
export interface SparsePart {
  position: number;
  data: Buffer;
}

/** Reads the content of a sparse file in GNU's format 1.0: a map of its parts, then their data. */
export class SparseReader {
  readonly #name: BytePath;
  readonly #size: number;
  #head = Buffer.alloc(0);
  #ranges: { position: number; length: number }[] | null = null;

  /** `size` is that of the whole file, in bytes. */
  constructor(name: BytePath, size: number) {
    this.#name = name;
    this.#size = size;
  }

  /** The parts of the file in the next piece of content. Throws `invalid_request` for a map that makes no sense. */
  parts(chunk: Buffer): SparsePart[] {
    if (this.#ranges !== null) return this.#data(chunk);
    this.#head = Buffer.concat([this.#head, chunk]);
    const rest = this.#readMap();
    return rest === null ? [] : this.#data(rest);
  }

  /** Throws `invalid_request` unless all of the file has arrived. */
  end(): void {
    if (this.#ranges === null || this.#ranges.some(({ length }) => length > 0)) throw this.#invalid();
  }

  /** What follows the map; null while it is incomplete. */
  #readMap(): Buffer | null {
    if (this.#head.length > MAP_MAX_BYTES) throw this.#invalid();
    let at = 0;
    const number = (): number | null => {
      const end = this.#head.indexOf(0x0a, at);
      if (end === -1) return null;
      const text = this.#head.toString('latin1', at, end);
      if (!/^\d{1,15}$/.test(text)) throw this.#invalid();
      at = end + 1;
      return Number(text);
    };
    const count = number();
    if (count === null) return null;
    const ranges: { position: number; length: number }[] = [];
    let last = 0;
    for (let i = 0; i < count; i++) {
      const position = number();
      const length = number();
      if (position === null || length === null) return null;
      if (position < last || position + length > this.#size) throw this.#invalid();
      last = position + length;
      ranges.push({ position, length });
    }
    const start = Math.ceil(at / BLOCK_BYTES) * BLOCK_BYTES;
    if (this.#head.length < start) return null;
    this.#ranges = ranges;
    return this.#head.subarray(start);
  }

  #data(chunk: Buffer): SparsePart[] {
    const parts: SparsePart[] = [];
    const ranges = this.#ranges ?? [];
    let rest = chunk;
    while (rest.length > 0) {
      const [range] = ranges;
      if (range === undefined) throw this.#invalid();
      const data = rest.subarray(0, range.length);
      if (data.length > 0) parts.push({ position: range.position, data });
      range.position += data.length;
      range.length -= data.length;
      rest = rest.subarray(data.length);
      if (range.length === 0) ranges.shift();
    }
    return parts;
  }

  #invalid(): FieldError {
    return invalidEntry(this.#name, 'is a sparse file whose map makes no sense');
  }
}
