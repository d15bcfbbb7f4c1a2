import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { extract, type Header } from 'tar-stream';
import { ARCHIVE_ENTRIES_MAX } from '../../contract/defaults.ts';
import { ApiError, FieldError, invalidField } from '../../contract/errors.ts';
import { type BytePath, bytePath, shownBytes } from '../byte-path.ts';
import { isSystemError } from '../file-error.ts';

/** What is used of an entry's stream. */
interface Entry {
  header: Header;
  destroyed: boolean;
  read(): unknown;
  on(event: 'readable' | 'close', listener: () => void): Entry;
}

const GZIP = [0x1f, 0x8b];
/** How files that are no tar archives, and are often sent as such, begin. */
const OTHER_FORMATS: [format: string, magic: string][] = [
  ['xz', '\xfd7zXZ\0'],
  ['zstd', '\x28\xb5\x2f\xfd'],
  ['bzip2', 'BZh'],
  ['lz4', '\x04\x22\x4d\x18'],
  ['zip', 'PK\x03\x04'],
  ['7z', '7z\xbc\xaf\x27\x1c'],
];
/** Records of one extended header, with those for all entries, which each entry with such a header costs again. */
const RECORDS_MAX = 1_000;
/** Bytes that belong to no file: of an archive without entries, and for each further entry. */
const OVERHEAD_MIN_BYTES = 64 * 1024 * 1024;
const OVERHEAD_ENTRY_BYTES = 8 * 1024;
const INCOMPLETE = new Error('Unexpected end of data');

const TOO_MANY_ENTRIES = invalidField('body', `must have at most ${ARCHIVE_ENTRIES_MAX} entries`);
const TOO_LITTLE_CONTENT = invalidField('body', 'must not be headers and padding for the most part');

/** One entry of an uploaded archive, its names checked by nobody yet. */
export interface ArchiveEntry {
  name: BytePath;
  type: string;
  link_name: BytePath;
  mode: number;
  modified: Date;
  /** What follows, in bytes. */
  size: number;
  /** Of a sparse file in GNU's format 1.0: its whole size; `content` then begins with its map. */
  real_size: number | null;
  content: AsyncIterable<Buffer>;
}

/**
 * The entries of a tar or tar.gz stream, each to be read before the next. Throws `invalid_request` (body) for what is
 * neither, is cut off, has too many entries, or is mostly no content.
 */
export async function* archiveEntries(
  data: AsyncIterable<Buffer>,
  signal: AbortSignal,
): AsyncGenerator<ArchiveEntry, void> {
  // A name of an old header is bytes; one of an extended header is UTF-8.
  // The format of Unix version 7 has no magic; its checksum tells it.
  const entries = extract({ filenameEncoding: 'latin1', allowUnknownFormat: true } as Parameters<
    typeof extract
  >[0]);
  const source = Readable.from(data, { objectMode: false });
  const is_gzip = await beginsWithGzip(source);
  const bytes = is_gzip ? source.pipe(createGunzip()) : source;
  let failure: Error | null = null;
  const fail = (error: Error) => {
    failure ??= error;
    entries.destroy(error);
  };
  source.on('error', fail);
  bytes.on('error', fail).pipe(entries);
  let count = 0;
  let overhead_bytes = 0;
  bytes.on('data', ({ length }: Buffer) => {
    overhead_bytes += length;
    if (overhead_bytes > OVERHEAD_MIN_BYTES + count * OVERHEAD_ENTRY_BYTES) fail(TOO_LITTLE_CONTENT);
  });
  const onContent = (length: number) => {
    overhead_bytes -= length;
  };
  const onGone = () => fail(cutOff());
  signal.addEventListener('abort', onGone);
  try {
    for await (const entry of entries) {
      if (++count > ARCHIVE_ENTRIES_MAX) throw TOO_MANY_ENTRIES;
      yield entryOf(
        entry.header,
        contentOf(entry, () => failure, onContent),
      );
      if (failure) throw failure;
    }
  } catch (error) {
    throw bodyError(error);
  } finally {
    signal.removeEventListener('abort', onGone);
    source.destroy();
    bytes.destroy();
  }
}

/** The end of a body that its client did not finish. */
export function cutOff(): ApiError {
  return new ApiError('invalid_request', 'The body was cut off.');
}

/** An `invalid_request` about one entry. */
export function invalidEntry(name: BytePath, problem: string): FieldError {
  const shown = JSON.stringify(shownBytes(name).text);
  return new FieldError({ field: 'body', problem: `the entry ${shown} ${problem}` });
}

function entryOf(header: Header, content: AsyncIterable<Buffer>): ArchiveEntry {
  const pax = (header as { pax?: Record<string, string> | null }).pax ?? {};
  const sparse = sparseOf(pax);
  let records = 0;
  for (const _ in pax) {
    if (++records > RECORDS_MAX)
      throw invalidEntry(header.name, `has more than ${RECORDS_MAX} extended records`);
  }
  const given = pax.path === undefined ? header.name : bytePath(header.name);
  const link = header.linkname ?? '';
  return {
    name: sparse?.name ?? given,
    type: header.type ?? 'unknown',
    link_name: pax.linkpath === undefined ? link : bytePath(link),
    mode: header.mode ?? 0o644,
    modified: header.mtime ?? new Date(0),
    size: sizeOf(header),
    real_size: sparse?.size ?? null,
    content,
  };
}

/**
 * Names the same failures as `archiveEntries`; `cause` is what went wrong before the entry, null for its own end. Reads by
 * itself: the stream's own iterator costs as much as all else of a small entry.
 */
async function* contentOf(
  entry: Entry,
  cause: () => Error | null,
  onContent: (length: number) => void,
): AsyncGenerator<Buffer, void> {
  const is_file = isFileType(entry.header.type);
  let wake: (() => void) | null = null;
  for (let left = sizeOf(entry.header); left > 0; ) {
    const piece = entry.read() as Buffer | null;
    if (piece) {
      left -= piece.length;
      if (is_file) onContent(piece.length);
      yield piece;
    } else if (entry.destroyed) {
      throw bodyError(cause() ?? INCOMPLETE);
    } else {
      if (wake === null) entry.on('readable', () => wake?.()).on('close', () => wake?.());
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
}

/** Whether an entry is a file. */
export function isFileType(type: string | null | undefined): boolean {
  return type === 'file' || type === 'contiguous-file';
}

/** Of a directory, tar-stream has no content, whatever its header says. */
function sizeOf({ type, size }: Header): number {
  return type === 'directory' ? 0 : (size ?? 0);
}

function sparseOf(pax: Record<string, string>): { name: BytePath; size: number } | null {
  const major = pax['GNU.sparse.major'];
  if (major === undefined && pax['GNU.sparse.map'] === undefined && pax['GNU.sparse.size'] === undefined)
    return null;
  const name = bytePath(pax['GNU.sparse.name'] ?? '');
  const size = Number(pax['GNU.sparse.realsize']);
  if (major !== '1' || name === '' || !Number.isSafeInteger(size) || size < 0) {
    throw invalidEntry(name, 'is a sparse file of an unknown format');
  }
  return { name, size };
}

/** Whether a checksum in octal digits stands where a header has it. */
function isTarHeader(first: Buffer): boolean {
  return /^[0-7 ]{6}[\0 ]{2}/.test(first.toString('latin1', 148, 156));
}

async function beginsWithGzip(source: Readable): Promise<boolean> {
  const first: Buffer | null = await new Promise((resolve, reject) => {
    const look = () => {
      const chunk = source.read() as Buffer | null;
      if (chunk !== null || source.readableEnded) done(chunk);
    };
    const done = (chunk: Buffer | null) => {
      source.off('readable', look).off('end', onEnd).off('error', reject);
      resolve(chunk);
    };
    const onEnd = () => done(null);
    source.on('readable', look).on('end', onEnd).on('error', reject);
  });
  if (first === null || first.length === 0) throw invalidField('body', 'must be a tar archive');
  const start = first.toString('latin1', 0, 6);
  const other = OTHER_FORMATS.find(([, magic]) => start.startsWith(magic));
  // A tar archive may begin with such a name, but then has the rest of a header behind it.
  if (other && !isTarHeader(first)) throw invalidField('body', `must be tar or tar.gz, not ${other[0]}`);
  source.unshift(first);
  return GZIP.every((byte, i) => first[i] === byte);
}

function bodyError(error: unknown): unknown {
  if (error instanceof ApiError) return error;
  const { message = '', code = '' } = error as NodeJS.ErrnoException;
  if (code.startsWith('Z_')) return invalidField('body', 'is not valid gzip');
  if (isSystemError(error, 'ECONNRESET')) return cutOff();
  if (/invalid header|invalid tar header|unexpected end of data|exceeds max size/i.test(message)) {
    return invalidField('body', 'must be a complete tar archive');
  }
  return error;
}
