import { OUTPUT_CHUNK_BYTES, OUTPUT_PENDING_BYTES } from '../../contract/defaults.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type { OutputPosition, ProcessView } from '../../contract/processes.ts';
import { OUTPUT_STREAMS, type OutputStream } from '../../contract/words.ts';
import { release, retain } from './buffer-pool.ts';
import type { OutputRead } from './kept-files.ts';
import type { LosslessFollower } from './lossless-followers.ts';
import type { OutputLog } from './output-log.ts';
import { incompleteBytes } from './preview.ts';
import type { ProcessOutput } from './process-output.ts';

const CHARACTER_MAX_BYTES = 4;

/**
 * Where to begin: byte offsets per stream (a stream without one begins at the oldest kept byte), one offset for
 * every stream (a shorter stream begins at its end), or a number of bytes or lines before the end of each stream.
 */
export type OutputStart =
  | { offsets: Partial<OutputPosition> }
  | { offset: number }
  | { tail_bytes: number }
  | { tail_lines: number };

type EachStart = Exclude<OutputStart, { offset: number }>;

/** What to read. */
export interface OutputOptions {
  streams: readonly OutputStream[];
  start?: OutputStart;
  /** Continues until the process has ended. */
  follow?: boolean;
  /** Splits only between UTF-8 characters, while more output may follow. */
  whole_characters?: boolean;
  /** Misses no byte: the process is read no faster than the items are taken. */
  lossless?: boolean;
  /** Called when a lossless reader that took nothing for 60 s is dropped: it is then like any other. */
  onDropped?: () => void;
  /** Ends the reading early. */
  signal?: AbortSignal;
}

/**
 * `output`: bytes and the offset of the first; `position` is where both streams continue after it.
 * The bytes are valid until the next item is asked for.
 * `gone`: the reader was too slow, and the stream continues at `offset`. `exit`: the process has ended; always the last.
 */
export type OutputItem =
  | { type: 'output'; stream: OutputStream; offset: number; data: Buffer; position: OutputPosition }
  | { type: 'gone'; stream: OutputStream; offset: number; position: OutputPosition }
  | { type: 'exit'; process: ProcessView; position: OutputPosition };

/** The items of one read; `start` is where it begins. */
export type OutputItems = AsyncGenerator<OutputItem> & { readonly start: Readonly<OutputPosition> };

/** What a reader needs of a process. */
export interface OutputSource {
  /** Its `changes` are also notified at the end. */
  output: ProcessOutput;
  /** Whether the process has ended for good and all its own output is in the logs. */
  readonly is_drained: boolean;
  /** The process as the API gives it. */
  view(): Promise<ProcessView>;
}

/**
 * Reads kept output, and with `follow` later output, too, at its own pace: a slow reader takes no memory, and delays
 * nothing else unless it is lossless. At the end it reads from memory, behind it from the files. Throws `gone` for an
 * offset that is no longer kept, `invalid_request` for one beyond the end.
 */
export async function readOutput(source: OutputSource, query: OutputOptions): Promise<OutputItems> {
  const position = { stdout: 0, stderr: 0 };
  const logs = query.streams.map((stream) => source.output.logs[stream]);
  const follower = query.lossless
    ? source.output.lossless.add(query.streams, () => query.onDropped?.())
    : null;
  try {
    const start = forEach(logs, query.start);
    for (const log of logs) position[log.stream] = await findStart(log, start);
  } catch (error) {
    follower?.leave();
    throw error;
  }
  query.signal?.addEventListener('abort', () => {
    follower?.leave(); // a reading that never begins does not get to its end either
    source.output.changes.notify();
  });
  return Object.assign(readFrom(source, query, position, follower), { start: { ...position } });
}

/** One offset for several streams, as an offset for each. */
function forEach(logs: OutputLog[], start: OutputStart = { offsets: {} }): EachStart {
  if (!('offset' in start)) return start;
  const is_beyond = logs.every(({ end }) => start.offset > end);
  const offsets = logs.map((log) => [log.stream, is_beyond ? start.offset : Math.min(start.offset, log.end)]);
  return { offsets: Object.fromEntries(offsets) };
}

async function* readFrom(
  source: OutputSource,
  query: OutputOptions,
  position: OutputPosition,
  follower: LosslessFollower | null,
): AsyncGenerator<OutputItem> {
  const { streams, follow = false, signal } = query;
  const ends = follow ? streams.map((stream) => source.output.logs[stream].follow()) : [];
  // Half of what may wait for a lossless reader: the process can write the other half meanwhile. A client takes the same
  // bytes in larger pieces for less.
  const target = new ReadTarget(query.whole_characters ? OUTPUT_CHUNK_BYTES : OUTPUT_PENDING_BYTES / 2);
  follower?.take(position);
  try {
    while (!signal?.aborted) {
      // Taken before reading, so that no change is missed.
      const seen = source.output.changes.version;
      const was_drained = source.is_drained;
      const whole_characters = query.whole_characters === true && !was_drained;
      let has_read = false;
      for (const stream of streams) {
        const item = await readNext(source.output.logs[stream], position, target, whole_characters);
        if (!item) continue;
        has_read = true;
        position[stream] = item.type === 'gone' ? item.offset : item.offset + item.data.length;
        follower?.offer();
        yield { ...item, position: { ...position } };
        if (signal?.aborted) return; // what the caller has may still be on its way, and is not released
        if (item.type === 'output') release(item.data);
        follower?.take(position);
      }
      if (has_read) continue;
      if (was_drained) return yield { type: 'exit', process: await source.view(), position };
      if (!follow) return;
      await source.output.changes.after(seen);
    }
  } finally {
    follower?.leave();
    for (const end of ends) end();
  }
}

type Piece =
  | { type: 'output'; stream: OutputStream; offset: number; data: Buffer }
  | { type: 'gone'; stream: OutputStream; offset: number };

/** Memory for what is read from the disk, made when that is first needed. */
class ReadTarget {
  readonly max_bytes: number;
  #buffer: Buffer | null = null;

  constructor(max_bytes: number) {
    this.max_bytes = max_bytes;
  }

  get buffer(): Buffer {
    this.#buffer ??= Buffer.allocUnsafeSlow(this.max_bytes);
    return this.#buffer;
  }
}

/** The next bytes, which the caller releases, or a gap; null at the end. */
async function readNext(
  log: OutputLog,
  position: OutputPosition,
  target: ReadTarget,
  whole_characters: boolean,
): Promise<Piece | null> {
  const { stream } = log;
  const offset = position[stream];
  const recent = log.readRecent(offset)?.subarray(0, target.max_bytes);
  if (recent) retain(recent);
  const read: OutputRead = recent
    ? { data: recent }
    : await log.read(offset, target.max_bytes, target.buffer);
  if ('gone' in read) return { type: 'gone', stream, offset: read.gone };
  const data = whole_characters ? await wholeCharacters(log, offset, read.data) : read.data;
  if (data.buffer !== read.data.buffer) release(read.data);
  if (data.length > 0) return { type: 'output', stream, offset, data };
  release(data);
  return null;
}

/** Without the beginning of a character whose rest has not arrived yet. */
async function wholeCharacters(log: OutputLog, offset: number, data: Buffer): Promise<Buffer> {
  const cut = incompleteBytes(data);
  if (cut < data.length) return data.subarray(0, data.length - cut);
  // A read ends where a file does: the rest may be in the next one.
  const next = offset + data.length;
  const rest = next < log.end ? await log.read(next, CHARACTER_MAX_BYTES) : { data: Buffer.alloc(0) };
  if ('gone' in rest) return data;
  const whole = Buffer.concat([data, rest.data]);
  return whole.subarray(0, whole.length - incompleteBytes(whole));
}

async function findStart(log: OutputLog, start: EachStart): Promise<number> {
  if ('tail_bytes' in start) return Math.max(log.first, log.end - start.tail_bytes);
  if ('tail_lines' in start) return findLine(log, start.tail_lines);
  const offset = start.offsets[log.stream];
  if (offset === undefined) return log.first;
  if (offset > log.end) throw invalidField('offset', `is beyond the end of ${log.stream}, ${log.end}`);
  if (offset < log.first) {
    throw new ApiError('gone', `${log.stream} is kept from offset ${log.first} on.`, {
      stream: log.stream,
      first_offset: log.first,
    });
  }
  return offset;
}

/** The offset at which the last `lines` lines begin. A line break at the very end closes the last line. */
async function findLine(log: OutputLog, lines: number): Promise<number> {
  const { first, end } = log;
  if (lines <= 0) return end;
  for (let upper = end, breaks = 0; upper > first; ) {
    const lower = Math.max(first, upper - OUTPUT_CHUNK_BYTES);
    const data = await readBetween(log, lower, upper);
    if (!data) return upper;
    for (let at = data.length - 1; at >= 0; at--) {
      if (data[at] !== 0x0a || lower + at === end - 1) continue;
      if (++breaks === lines) return lower + at + 1;
    }
    upper = lower;
  }
  return first;
}

/** Exactly the bytes between two offsets, or null if some of them are not kept. */
async function readBetween(log: OutputLog, lower: number, upper: number): Promise<Buffer | null> {
  const parts: Buffer[] = [];
  for (let at = lower; at < upper; ) {
    const read = await log.read(at, upper - at);
    if ('gone' in read || read.data.length === 0) return null;
    parts.push(read.data);
    at += read.data.length;
  }
  return Buffer.concat(parts);
}

/** The end of both streams, and whether there was more before it. */
export interface OutputTail {
  stdout: Buffer;
  stderr: Buffer;
  stdout_truncated: boolean;
  stderr_truncated: boolean;
}

/** The last `max_bytes` of each stream, as far as they can be read now. */
export async function outputTail(
  logs: Record<OutputStream, OutputLog>,
  max_bytes: number,
): Promise<OutputTail> {
  const [stdout, stderr] = await Promise.all(OUTPUT_STREAMS.map((stream) => tailOf(logs[stream], max_bytes)));
  const [out, err] = [stdout as Tail, stderr as Tail];
  return {
    stdout: out.data,
    stderr: err.data,
    stdout_truncated: out.truncated,
    stderr_truncated: err.truncated,
  };
}

interface Tail {
  data: Buffer;
  truncated: boolean;
}

async function tailOf(log: OutputLog, max_bytes: number): Promise<Tail> {
  const parts: Buffer[] = [];
  const { end } = log;
  let start = Math.max(log.first, end - max_bytes);
  for (let at = start; at < end; ) {
    const read = await log.read(at, end - at);
    if ('gone' in read) {
      parts.length = 0; // bytes on both sides of a gap are not one text
      start = at = read.gone;
    } else {
      if (read.data.length === 0) break;
      parts.push(read.data);
      at += read.data.length;
    }
  }
  return { data: Buffer.concat(parts), truncated: start > 0 };
}
