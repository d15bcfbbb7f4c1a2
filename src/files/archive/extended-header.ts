import type { BytePath } from '../byte-path.ts';
import type { SparseFile } from './sparse-reader.ts';

/** What the headers for all entries may say of each. */
const OF_ALL = ['path', 'linkpath', 'size', 'mtime'];
const USED = new Set([
  ...OF_ALL,
  'GNU.sparse.major',
  'GNU.sparse.name',
  'GNU.sparse.realsize',
  'GNU.sparse.size',
  'GNU.volume.filename',
]);
const SPACE = 0x20;
const LINE_END = 0x0a;
const EQUALS = 0x3d;
const COMMA = 0x2c;
const ZERO = 0x30;

/** The records of an extended header of the POSIX format. Values are bytes. */
export class ExtendedHeader {
  readonly #values = new Map<string, BytePath>();
  /** Positions and lengths of a sparse file's parts in turn. */
  readonly #sparse_numbers: number[] = [];
  /** Whether it is no list of records. */
  readonly is_malformed: boolean;

  /** `for_all` is what headers for all entries have said: of a sparse file nothing, so that no map is read twice. */
  constructor(data: Buffer, for_all: ExtendedHeader | null) {
    for (const key of for_all ? OF_ALL : []) this.#values.set(key, for_all?.get(key) ?? '');
    this.is_malformed = for_all?.is_malformed === true || !this.#read(data);
  }

  /** The value of a key; undefined where it is missing or empty, which takes back what was said before. */
  get(key: string): BytePath | undefined {
    return this.#values.get(key) || undefined;
  }

  /** The number behind a key, NaN for what is none; undefined where it is missing. */
  number(key: string): number | undefined {
    const value = this.get(key);
    return value === undefined ? undefined : decimal(value);
  }

  /** The sparse file that the entry is, in any of GNU's formats for these headers; its size is NaN in an unknown one. */
  get sparse(): SparseFile | null {
    const major = this.get('GNU.sparse.major') ?? '0';
    if (major === '1') return { size: this.number('GNU.sparse.realsize') ?? Number.NaN, numbers: null };
    const size = this.number('GNU.sparse.size');
    if (size === undefined && major === '0') return null;
    return { size: major === '0' ? (size ?? Number.NaN) : Number.NaN, numbers: this.#sparse_numbers };
  }

  /** Reads `<length> <key>=<value>\n` again and again. Millions of them fit into a header: each byte is looked at once. */
  #read(data: Buffer): boolean {
    for (let at = 0; at < data.length && data[at] !== 0; ) {
      let key_at = at;
      let length = 0;
      for (; isDigit(data[key_at]); key_at++) length = length * 10 + (data[key_at] as number) - ZERO;
      const end = at + length;
      if (data[key_at] !== SPACE || end > data.length || data[end - 1] !== LINE_END) return false;
      let equals = key_at + 1;
      while (equals < end && data[equals] !== EQUALS) equals++;
      if (equals >= end) return false;
      this.#put(data.toString('latin1', key_at + 1, equals), data, equals + 1, end - 1);
      at = end;
    }
    return true;
  }

  #put(key: string, data: Buffer, start: number, end: number): void {
    if (USED.has(key)) this.#values.set(key, data.toString('latin1', start, end));
    // In the format 0.0 each number has a record, and keys are repeated; in 0.1 one record has all of them.
    else if (key === 'GNU.sparse.offset' || key === 'GNU.sparse.numbytes' || key === 'GNU.sparse.map') {
      this.#readNumbers(data, start, end);
    }
  }

  /** Numbers with commas between them; what is none becomes NaN. */
  #readNumbers(data: Buffer, start: number, end: number): void {
    let number = start < end ? 0 : Number.NaN;
    for (let at = start; at < end; at++) {
      const byte = data[at] as number;
      if (byte === COMMA) {
        this.#sparse_numbers.push(number);
        number = 0;
      } else number = isDigit(byte) ? number * 10 + byte - ZERO : Number.NaN;
    }
    this.#sparse_numbers.push(number);
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte < ZERO + 10;
}

function decimal(text: string): number {
  return /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
}
