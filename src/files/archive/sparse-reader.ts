import type { FieldError } from '../../contract/errors.ts';
import type { BytePath } from '../byte-path.ts';
import { invalidEntry } from './archive-error.ts';
import { BLOCK_BYTES } from './tar-header.ts';

/** The longest map that is read: a part takes some twenty bytes of it, and at least four. */
export const MAP_MAX_BYTES = 1024 * 1024;
/** As many as fit into 2^53 with any of them. */
const DIGITS_MAX = 15;
const LINE_END = 0x0a;
const ZERO = 0x30;
const NINE = 0x39;

/** A sparse file as an archive has it. */
export interface SparseFile {
  /** Of the whole file, in bytes. */
  size: number;
  /** Positions and lengths of its parts in turn; null where the content begins with its map. */
  numbers: readonly number[] | null;
}

/** A piece of data and its place in the file. */
export interface SparsePart {
  position: number;
  data: Buffer;
}

/**
 * Reads the content of a sparse file in one of GNU's formats: in 1.0 a map of its parts, then their data. Each byte is
 * looked at once, however the content is cut into pieces.
 */
export class SparseReader {
  readonly #name: BytePath;
  readonly #size: number;
  /** Parts that have data; adjacent ones are one. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  /** The number that is being read. */
  #number = 0;
  #digits = 0;
  /** Numbers of the map: how many have been read, and how many there are. */
  #read = 0;
  #count = 1;
  #position = 0;
  #map_bytes = 0;
  #is_data = false;
  /** The part whose data comes next, and how much of it there was. */
  #next = 0;
  #done = 0;

  /** Throws `invalid_request` for a map that makes no sense. */
  constructor(name: BytePath, { size, numbers }: SparseFile) {
    this.#name = name;
    this.#size = size;
    if (numbers === null) return;
    for (let i = 0; i < numbers.length; i += 2) {
      const start = numbers[i] as number;
      this.#takePart(start, start + (numbers[i + 1] ?? Number.NaN));
    }
    this.#is_data = true;
  }

  /** The parts of the file in the next piece of content. Throws `invalid_request` for a map that makes no sense. */
  parts(chunk: Buffer): SparsePart[] {
    const start = this.#is_data ? 0 : this.#readMap(chunk);
    return start < chunk.length ? this.#data(chunk, start) : [];
  }

  /** Throws `invalid_request` unless all of the file has arrived. */
  end(): void {
    if (!this.#is_data || this.#next < this.#starts.length) throw this.#invalid();
  }

  /** Returns where the data begins in a piece of content; its length while the map is incomplete. */
  #readMap(chunk: Buffer): number {
    let at = 0;
    for (; at < chunk.length && this.#read < this.#count; at++) {
      const byte = chunk[at] as number;
      if (byte >= ZERO && byte <= NINE && this.#digits < DIGITS_MAX) {
        this.#number = this.#number * 10 + byte - ZERO;
        this.#digits += 1;
      } else if (byte === LINE_END && this.#digits > 0) this.#takeNumber();
      else throw this.#invalid();
    }
    this.#map_bytes += at;
    if (this.#map_bytes > MAP_MAX_BYTES) throw this.#invalid();
    if (this.#read < this.#count) return at;
    const padding = (BLOCK_BYTES - (this.#map_bytes % BLOCK_BYTES)) % BLOCK_BYTES;
    const skipped = Math.min(padding, chunk.length - at);
    this.#map_bytes += skipped;
    this.#is_data = skipped === padding;
    return at + skipped;
  }

  /** The first number says how many parts there are; each of them has a position and a length. */
  #takeNumber(): void {
    const number = this.#number;
    if (this.#read === 0) this.#count = 1 + 2 * number;
    else if (this.#read % 2 === 1) this.#position = number;
    else this.#takePart(this.#position, this.#position + number);
    this.#read += 1;
    this.#number = 0;
    this.#digits = 0;
  }

  #takePart(start: number, end: number): void {
    const last = this.#ends.length - 1;
    const last_end = this.#ends[last] ?? 0;
    if (!(start >= last_end && start <= end && end <= this.#size)) throw this.#invalid();
    if (start === end) return;
    if (start === last_end && last >= 0) this.#ends[last] = end;
    else {
      this.#starts.push(start);
      this.#ends.push(end);
    }
  }

  #data(chunk: Buffer, start: number): SparsePart[] {
    const parts: SparsePart[] = [];
    for (let at = start; at < chunk.length; ) {
      const [first, end] = [this.#starts[this.#next], this.#ends[this.#next]];
      if (first === undefined || end === undefined) throw this.#invalid();
      const position = first + this.#done;
      const data = chunk.subarray(at, at + end - position);
      parts.push({ position, data });
      at += data.length;
      this.#done += data.length;
      if (first + this.#done < end) continue;
      this.#next += 1;
      this.#done = 0;
    }
    return parts;
  }

  #invalid(): FieldError {
    return invalidEntry(this.#name, 'is a sparse file whose map makes no sense');
  }
}
