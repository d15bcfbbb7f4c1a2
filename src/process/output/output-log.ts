import {
  OUTPUT_CHUNK_BYTES,
  OUTPUT_KEEP_BYTES,
  OUTPUT_PENDING_ALL_BYTES,
  OUTPUT_PENDING_BYTES,
  OUTPUT_PREVIEW_BYTES,
} from '../../contract/defaults.ts';
import type { OutputStream } from '../../contract/words.ts';
import { ChangeSignal } from '../change-signal.ts';
import { ReadMemory, release } from './buffer-pool.ts';
import { KeptFiles, type OutputRead } from './kept-files.ts';
import { RecentOutput } from './recent-output.ts';

/** What waits for the disk, of all streams together. */
const all_pending = {
  bytes: 0,
  /** Notified when it becomes less than too much. */
  room: new ChangeSignal(),
  get is_full(): boolean {
    return this.bytes >= OUTPUT_PENDING_ALL_BYTES;
  },
};

/**
 * What one stream of a process wrote: on its way to the disk, kept there, and the newest of it in memory.
 *
 * | State   | `#writing` | Entered                       | Left                       |
 * |---------|------------|-------------------------------|----------------------------|
 * | idle    | null       | everything pending is written | `append`: writing          |
 * | writing | set        | `append`                      | nothing pending: idle      |
 */
export class OutputLog {
  readonly stream: OutputStream;
  /** Notified when there is more to read. */
  readonly changes: ChangeSignal;
  /** What the lossless followers hold. */
  readonly holds: OutputHolds;
  /** What output is read into before it is appended. */
  readonly memory = new ReadMemory();
  readonly #recent = new RecentOutput();
  readonly #files: KeptFiles;
  #pending: Buffer[] = [];
  #pending_bytes = 0;
  #writing: Promise<void> | null = null;
  #tail: Buffer = Buffer.alloc(0);
  /** The offset after the last byte accepted, also of those that are not yet written. */
  #accepted: number;

  private constructor(stream: OutputStream, changes: ChangeSignal, files: KeptFiles, holds: OutputHolds) {
    this.stream = stream;
    this.changes = changes;
    this.#files = files;
    this.holds = holds;
    this.#accepted = this.end;
  }

  /** The empty log of a new process. */
  static create(folder: string, stream: OutputStream, changes: ChangeSignal): OutputLog {
    const holds = new OutputHolds();
    const files = KeptFiles.create(folder, stream, () => holds.slowest);
    return new OutputLog(stream, changes, files, holds);
  }

  /** The log that an earlier daemon left in `folder`. Throws the system's error if that cannot be read. */
  static async load(folder: string, stream: OutputStream, changes: ChangeSignal): Promise<OutputLog> {
    const holds = new OutputHolds();
    const files = await KeptFiles.load(folder, stream, () => holds.slowest);
    const log = new OutputLog(stream, changes, files, holds);
    log.#tail = await lastBytes(files);
    return log;
  }

  /** Offset of the oldest kept byte. */
  get first(): number {
    return this.#files.first;
  }

  /** Offset after the newest byte that can be read. */
  get end(): number {
    return this.#files.end;
  }

  /** Bytes on disk. */
  get size_bytes(): number {
    return this.#files.size_bytes;
  }

  /** Bytes that the disk refused since the daemon started. */
  get dropped_bytes(): number {
    return this.#files.dropped_bytes;
  }

  /**
   * Whether too much output, of this stream or of all, waits for the disk or for a lossless follower: the process should not
   * be read for now.
   */
  get is_full(): boolean {
    const is_own_full = this.#pending_bytes >= OUTPUT_PENDING_BYTES;
    return is_own_full || all_pending.is_full || this.holds.isFull(this.#accepted);
  }

  /** The last bytes that the process wrote, also those that are not yet on disk. */
  get tail(): Buffer {
    return this.#tail;
  }

  /**
   * Takes over `data`, which the caller must not change afterwards, and releases it. It can be read once it is written.
   */
  append(data: Buffer): void {
    this.#pending.push(data);
    this.#pending_bytes += data.length;
    all_pending.bytes += data.length;
    this.#accepted += data.length;
    const tail = data.length >= OUTPUT_PREVIEW_BYTES ? data : Buffer.concat([this.#tail, data]);
    // A copy: a view would hold the whole of what it was cut from in memory.
    this.#tail = Buffer.from(tail.subarray(Math.max(0, tail.length - OUTPUT_PREVIEW_BYTES)));
    this.#writing ??= this.#writePending();
  }

  /** Whether output is being written. */
  get is_writing(): boolean {
    return this.#writing !== null;
  }

  /** Resolves when nothing waits for what is being written, and no lossless follower is too far behind. */
  async whenRoom(): Promise<void> {
    const { room } = this.holds;
    while (this.#pending.length > 0 || this.is_full) {
      const is_over = new AbortController();
      const waits = [room, all_pending.room].map((each) => each.after(each.version, is_over.signal));
      await Promise.race(waits);
      is_over.abort();
    }
  }

  /** Keeps the newest output in memory until the returned function is called. */
  follow(): () => void {
    return this.#recent.follow(this.#accepted - this.#pending_bytes);
  }

  /** Resolves when everything accepted so far is written or given up. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  /** Closes the file, once everything is written or given up. It is opened again if more output arrives. */
  async close(): Promise<void> {
    await this.flush();
    this.#files.close();
  }

  /** What is in memory from `offset` on, see RecentOutput; null if it is not in memory, or at the end. */
  readRecent(offset: number): Buffer | null {
    return this.#recent.at(offset);
  }

  /**
   * Up to `max_bytes` from `offset`, in `target` if that is given; empty at the end. For an offset that is not kept,
   * `gone` is the next one that is.
   */
  async read(offset: number, max_bytes = OUTPUT_CHUNK_BYTES, target?: Buffer): Promise<OutputRead> {
    const data = this.#readTail(offset, max_bytes);
    return data ? { data } : this.#files.read(offset, max_bytes, target);
  }

  /** Most processes write so little that all of it can be read from memory. */
  #readTail(offset: number, max_bytes: number): Buffer | null {
    const tail_offset = this.#accepted - this.#tail.length;
    if (this.dropped_bytes > 0 || offset < tail_offset || offset >= this.end) return null;
    return this.#tail.subarray(offset - tail_offset, Math.min(offset + max_bytes, this.end) - tail_offset);
  }

  async #writePending(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      const batch_bytes = this.#pending_bytes;
      this.#pending = [];
      await this.#files.write(batch, batch_bytes);
      for (const data of batch) {
        this.#recent.add(data);
        release(data);
      }
      this.#pending_bytes -= batch_bytes;
      const was_full = all_pending.is_full;
      all_pending.bytes -= batch_bytes;
      if (was_full && !all_pending.is_full) all_pending.room.notify();
      this.holds.room.notify();
      this.changes.notify();
    }
    this.memory.leave();
    this.#writing = null;
  }
}

/**
 * How far each lossless follower of one stream has taken it: nothing that one of them has not taken is removed, and the
 * process is read only a little further.
 */
class OutputHolds {
  /** Notified when less output waits for the disk or for a lossless follower. */
  readonly room = new ChangeSignal();
  readonly #taken = new Map<object, number>();
  #ahead_max_bytes = OUTPUT_PENDING_BYTES;

  /** The offset that the slowest follower has taken everything before; infinite if there is none. */
  get slowest(): number {
    return Math.min(...this.#taken.values());
  }

  /** Whether a process that was read to offset `end` should not be read for now. */
  isFull(end: number): boolean {
    return this.#taken.size > 0 && end - this.slowest >= this.#ahead_max_bytes;
  }

  /** Notes that this follower, which may be new, has taken everything before `offset`. */
  set(follower: object, offset: number): void {
    this.#taken.set(follower, offset);
    this.room.notify();
  }

  /** Forgets a follower. */
  delete(follower: object): void {
    if (this.#taken.delete(follower)) this.room.notify();
  }

  /**
   * Lets followers be as far behind as output is kept at all, or ends that: a process that is to end must not wait for
   * a follower that takes nothing.
   */
  widen(is_ending: boolean): void {
    this.#ahead_max_bytes = is_ending ? OUTPUT_KEEP_BYTES : OUTPUT_PENDING_BYTES;
    this.room.notify();
  }
}

/** The bytes of a preview; none if they cannot be read. */
async function lastBytes(files: KeptFiles): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let at = Math.max(files.first, files.end - OUTPUT_PREVIEW_BYTES); at < files.end; ) {
    const read = await files.read(at, OUTPUT_PREVIEW_BYTES);
    if ('gone' in read) return Buffer.alloc(0);
    parts.push(read.data);
    at += read.data.length;
  }
  return Buffer.concat(parts);
}
