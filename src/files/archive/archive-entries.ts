import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ARCHIVE_ENTRIES_MAX } from '../../contract/defaults.ts';
import { ApiError, type FieldError, invalidField } from '../../contract/errors.ts';
import type { BytePath } from '../byte-path.ts';
import { isSystemError } from '../file-error.ts';
import { cutOff, invalidEntry, quoted } from './archive-error.ts';
import { ByteReader } from './byte-reader.ts';
import { ExtendedHeader } from './extended-header.ts';
import { type HeaderBlock, readHeaderBlock, readSparseBlock, textAt } from './header-block.ts';
import { MAP_MAX_BYTES, type SparseFile } from './sparse-reader.ts';
import { BLOCK_BYTES, padding } from './tar-header.ts';

const GZIP = '\x1f\x8b';
/** How files begin that are no tar archives and often sent as such, and what makes one of them. */
const OTHER_FORMATS: [format: string, magic: string, unpack_with: string][] = [
  ['xz', '\xfd7zXZ\0', 'xz -dc'],
  ['zstd', '\x28\xb5\x2f\xfd', 'zstd -dc'],
  ['bzip2', 'BZh', 'bzip2 -dc'],
  ['lz4', '\x04\x22\x4d\x18', 'lz4 -dc'],
  ['lzip', 'LZIP', 'lzip -dc'],
  ['lzop', '\x89LZO', 'lzop -dc'],
  ['lzma', '\x5d\0\0', 'xz -dc'],
  ['compress', '\x1f\x9d', 'gzip -dc'],
  ['zip', 'PK\x03\x04', 'unzip'],
  ['7z', '7z\xbc\xaf\x27\x1c', '7z x'],
];
/** Entries by their flags; others are named by their flag. */
const TYPES: Record<string, string> = {
  '\0': 'file',
  0: 'file',
  1: 'link',
  2: 'symlink',
  3: 'character-device',
  4: 'block-device',
  5: 'directory',
  6: 'fifo',
  7: 'file',
  D: 'directory',
  S: 'file',
};
/** Whatever their headers say, nothing follows these. */
const WITHOUT_CONTENT = /[1-6]/;
/** Of an extended header, and of a long name. */
const EXTENDED_MAX_BYTES = 4 * 1024 * 1024;
/** Bytes that belong to no file: of an archive without entries, and for each further entry. */
const OVERHEAD_MIN_BYTES = 64 * 1024 * 1024;
const OVERHEAD_ENTRY_BYTES = 8 * 1024;
/** Blocks of zeros behind which anything may follow. */
const END_BLOCKS = 2;
const TOO_MANY_ENTRIES = invalidField('body', `must have at most ${ARCHIVE_ENTRIES_MAX} entries`);
const TOO_LITTLE_CONTENT = invalidField('body', 'must not be headers and padding for the most part');
const FURTHER_VOLUME = 'continues a file of another volume, which is not accepted';
const ZEROS = Buffer.alloc(BLOCK_BYTES);
const NOTHING = Buffer.alloc(0);
/** Times that are meant; larger ones overflow what the kernel takes. */
const MODIFIED_MAX_S = 8_640_000_000_000;

/** One entry of an uploaded archive, its names checked by nobody yet. */
export interface ArchiveEntry {
  name: BytePath;
  /** A flag in quotes where it has no name. */
  type: string;
  link_name: BytePath;
  mode: number;
  /** When it was modified, in seconds; NaN if that makes no sense. */
  modified_s: number;
  sparse: SparseFile | null;
  /** Need not be read. */
  content: AsyncIterable<Buffer>;
}

/**
 * The entries of a tar or tar.gz stream, each to be read before the next: in the formats of Unix version 7, POSIX and GNU,
 * with all that GNU tar does to names and sparse files. Labels, and the lists of directories in incremental archives, are
 * passed over. `data` has to end with its client. Throws `invalid_request` (body) for what is neither, is cut off, has too
 * many entries, or is mostly no content.
 */
export async function* archiveEntries(data: AsyncIterable<Buffer>): AsyncGenerator<ArchiveEntry, void> {
  const reader = new EntryReader(data);
  try {
    for (let entry = await reader.next(); entry !== null; entry = await reader.next()) yield entry;
  } finally {
    reader.end();
  }
}

class EntryReader {
  readonly #bytes: ByteReader;
  /** Of the last entry. */
  #name: BytePath | null = null;
  /** Bytes of its content and padding that have not been read. */
  #left = 0;
  #padding = 0;
  /** What extended headers for all entries have said. */
  #for_all: ExtendedHeader | null = null;
  #count = 0;
  #overhead_bytes = 0;

  constructor(data: AsyncIterable<Buffer>) {
    this.#bytes = new ByteReader(decompressed(data, () => this.#where()));
  }

  /** The next entry; null at the end. */
  async next(): Promise<ArchiveEntry | null> {
    await this.#skip(this.#left + this.#padding);
    this.#left = 0;
    this.#padding = 0;
    let name: BytePath | null = null;
    let link_name: BytePath | null = null;
    let extended: ExtendedHeader | null = null;
    for (;;) {
      const header = await this.#header();
      if (header === null) {
        if ((name ?? link_name ?? extended) !== null) throw this.#cutOff();
        return null;
      }
      if (header.flag === 'L') name = textAt(await this.#extension(header), 0, header.size);
      else if (header.flag === 'K') link_name = textAt(await this.#extension(header), 0, header.size);
      else if (header.flag === 'x' || header.flag === 'X')
        extended = new ExtendedHeader(await this.#extension(header), this.#for_all);
      else if (header.flag === 'g')
        this.#for_all = new ExtendedHeader(await this.#extension(header), this.#for_all);
      else if (header.flag === 'V') await this.#extension(header);
      else {
        const { name: own_name, link_name: own_link_name } = header;
        return this.#entry(
          { ...header, name: name ?? own_name, link_name: link_name ?? own_link_name },
          extended ?? (this.#for_all && new ExtendedHeader(NOTHING, this.#for_all)),
        );
      }
    }
  }

  /** Asks the stream of data to end. Idempotent. */
  end(): void {
    this.#bytes.end();
  }

  /** The next header; null at the end of the archive, behind which anything may follow. */
  async #header(): Promise<HeaderBlock | null> {
    for (let zeros = 0; ; zeros++) {
      const block = await this.#bytes.take(BLOCK_BYTES);
      this.#spend(block.length);
      if (block.length === 0) return null;
      if (block.equals(ZEROS)) continue;
      const header = block.length === BLOCK_BYTES ? readHeaderBlock(block) : null;
      if (header) return header;
      if (zeros < END_BLOCKS) {
        if (block.length < BLOCK_BYTES) throw this.#cutOff();
        throw incomplete(`there is no header ${this.#where()}`);
      }
      for await (const { length } of this.#bytes.all()) this.#spend(length);
      return null;
    }
  }

  /** What belongs to the header of the entry that follows. */
  async #extension({ size }: HeaderBlock): Promise<Buffer> {
    if (!(size >= 0 && size <= EXTENDED_MAX_BYTES)) {
      throw incomplete(`an extended header ${this.#where()} has more than ${EXTENDED_MAX_BYTES} bytes`);
    }
    const data = await this.#bytes.take(size);
    this.#spend(data.length);
    if (data.length < size) throw this.#cutOff();
    await this.#skip(padding(size).length);
    return data;
  }

  async #entry(header: HeaderBlock, extended: ExtendedHeader | null): Promise<ArchiveEntry> {
    const name = extended?.get('GNU.sparse.name') ?? extended?.get('path') ?? header.name;
    const type = TYPES[header.flag] ?? JSON.stringify(header.flag);
    const size = extended?.number('size') ?? header.size;
    const modified_s = Number(extended?.get('mtime') ?? header.modified_s);
    this.#name = name;
    if (++this.#count > ARCHIVE_ENTRIES_MAX) throw TOO_MANY_ENTRIES;
    if (extended?.is_malformed) throw invalidEntry(name, 'has an extended header that makes no sense');
    if (header.flag === 'M') throw invalidEntry(name, FURTHER_VOLUME);
    const continued = this.#for_all?.get('GNU.volume.filename');
    if (continued !== undefined) throw invalidEntry(continued, FURTHER_VOLUME);
    if (!WITHOUT_CONTENT.test(header.flag)) {
      if (!isSize(size)) throw invalidEntry(name, 'has a size that makes no sense');
      this.#left = size;
      this.#padding = padding(size).length;
    }
    return {
      name,
      type: type === 'file' && name.endsWith('/') ? 'directory' : type,
      link_name: extended?.get('linkpath') ?? header.link_name,
      mode: header.mode,
      modified_s: Math.abs(modified_s) <= MODIFIED_MAX_S ? modified_s : Number.NaN,
      sparse: type === 'file' ? await this.#sparse(name, header, extended) : null,
      content: this.#content(),
    };
  }

  async #sparse(
    name: BytePath,
    header: HeaderBlock,
    extended: ExtendedHeader | null,
  ): Promise<SparseFile | null> {
    const sparse = header.flag === 'S' ? await this.#oldSparse(name, header) : (extended?.sparse ?? null);
    if (sparse && !isSize(sparse.size)) throw invalidEntry(name, 'is a sparse file of an unknown format');
    return sparse;
  }

  /** In GNU's old format, further blocks of the map follow the header. */
  async #oldSparse(name: BytePath, { old_sparse }: HeaderBlock): Promise<SparseFile> {
    if (old_sparse === null) return { size: Number.NaN, numbers: null };
    const numbers = [...old_sparse.numbers];
    let { is_more } = old_sparse;
    for (let map_bytes = 0; is_more; map_bytes += BLOCK_BYTES) {
      const block = await this.#bytes.take(BLOCK_BYTES);
      this.#spend(block.length);
      if (block.length < BLOCK_BYTES) throw this.#cutOffEntry();
      if (map_bytes >= MAP_MAX_BYTES) throw invalidEntry(name, 'is a sparse file with too many parts');
      const more = readSparseBlock(block);
      numbers.push(...more.numbers);
      is_more = more.is_more;
    }
    return { size: old_sparse.size, numbers };
  }

  /** Of the last entry alone. */
  async *#content(): AsyncGenerator<Buffer, void> {
    while (this.#left > 0) {
      const piece = await this.#bytes.some(this.#left);
      if (piece === null) throw this.#cutOffEntry();
      this.#left -= piece.length;
      yield piece;
    }
  }

  async #skip(size: number): Promise<void> {
    for (let left = size; left > 0; ) {
      const piece = await this.#bytes.some(left);
      if (piece === null) throw this.#cutOffEntry();
      this.#spend(piece.length);
      left -= piece.length;
    }
  }

  #spend(bytes: number): void {
    this.#overhead_bytes += bytes;
    if (this.#overhead_bytes > OVERHEAD_MIN_BYTES + this.#count * OVERHEAD_ENTRY_BYTES) {
      throw TOO_LITTLE_CONTENT;
    }
  }

  #where(): string {
    return this.#name === null ? 'at its beginning' : `after the entry ${quoted(this.#name)}`;
  }

  #cutOff(): FieldError {
    return incomplete(`it is cut off ${this.#where()}`);
  }

  #cutOffEntry(): FieldError {
    return incomplete(`the entry ${quoted(this.#name ?? '')} is cut off`);
  }
}

/** The bytes of an archive. `where` says how far they have been read. */
async function* decompressed(data: AsyncIterable<Buffer>, where: () => string): AsyncGenerator<Buffer, void> {
  const source = new ByteReader(data);
  try {
    const first = await source.take(BLOCK_BYTES);
    if (first.length === 0) throw invalidField('body', 'must be a tar archive');
    const start = first.toString('latin1', 0, 6);
    // A tar archive may begin with a name that looks like another format.
    const is_tar = first.length === BLOCK_BYTES && readHeaderBlock(first) !== null;
    const other = is_tar ? undefined : OTHER_FORMATS.find(([, magic]) => start.startsWith(magic));
    if (other) {
      const [format, , unpack_with] = other;
      throw invalidField('body', `must be tar or tar.gz, not ${format}: unpack that first (${unpack_with})`);
    }
    const whole = startingWith(first, source);
    if (!is_tar && start.startsWith(GZIP)) yield* pipeline(whole, createGunzip(), () => {});
    else yield* whole;
  } catch (error) {
    throw bodyError(error, where());
  } finally {
    source.end();
  }
}

async function* startingWith(first: Buffer, rest: ByteReader): AsyncGenerator<Buffer, void> {
  yield first;
  yield* rest.all();
}

function bodyError(error: unknown, where: string): unknown {
  if (error instanceof ApiError) return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code.startsWith('Z_')) return invalidField('body', `is not valid gzip ${where}`);
  return isSystemError(error, 'ECONNRESET') ? cutOff() : error;
}

function incomplete(problem: string): FieldError {
  return invalidField('body', `must be a complete tar archive: ${problem}`);
}

function isSize(size: number): boolean {
  return Number.isSafeInteger(size) && size >= 0;
}
