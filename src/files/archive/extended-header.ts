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
  'GNU.sparse.map',
  'GNU.volume.filename',
]);
/** Digits of a record's length, and the space behind them. */
const LENGTH_BYTES_MAX = 11;

/** The records of an extended header of the POSIX format. Values are bytes. */
export class ExtendedHeader {
  readonly #values = new Map<string, BytePath>();
  /** Of GNU's format 0.0 for sparse files, whose keys are repeated. */
  readonly #sparse_numbers: number[] = [];
  /** Whether it is no list of records. */
  readonly is_malformed: boolean;

  /** `for_all` is what headers for all entries have said. */
  constructor(data: Buffer, for_all: ExtendedHeader | null) {
    for (const key of for_all ? OF_ALL : []) this.#values.set(key, for_all?.get(key) ?? '');
    this.is_malformed = !this.#read(data.toString('latin1'));
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
    const map = this.get('GNU.sparse.map');
    const numbers = map === undefined ? this.#sparse_numbers : map.split(',').map(decimal);
    return { size: major === '0' ? (size ?? Number.NaN) : Number.NaN, numbers };
  }

  /** Reads `<length> <key>=<value>\n` again and again. Looks at each byte a few times, whatever the lengths are. */
  #read(text: string): boolean {
    for (let at = 0; at < text.length && text[at] !== '\0'; ) {
      const [length = ''] = /^[0-9]+ /.exec(text.slice(at, at + LENGTH_BYTES_MAX)) ?? [];
      const end = at + Number(length);
      const record = text.slice(at + length.length, end - 1);
      const equals = record.indexOf('=');
      if (equals < 0 || text[end - 1] !== '\n') return false;
      this.#put(record.slice(0, equals), record.slice(equals + 1));
      at = end;
    }
    return true;
  }

  #put(key: string, value: BytePath): void {
    if (key === 'GNU.sparse.offset' || key === 'GNU.sparse.numbytes')
      this.#sparse_numbers.push(decimal(value));
    else if (USED.has(key)) this.#values.set(key, value);
  }
}

function decimal(text: string): number {
  return /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
}
