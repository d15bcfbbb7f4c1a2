import type { Readable } from 'node:stream';
import { READ_OUTSIDE_TIMEOUT_MS } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import { type Clock, runTime, systemClock } from '../clock.ts';
import { SharedWork } from '../shared-work.ts';
import { loadLauncherStarter } from './start-launcher.ts';

/** What the launcher ends with if the system has nothing left to read with: EAGAIN, ENOMEM, ENFILE, EMFILE. */
const EXHAUSTED: ReadonlySet<number | null> = new Set([11, 12, 23, 24]);

/** By path; there are only a few that anybody asks for. */
const readers = new Map<string, OutsideReader>();

/**
 * Reads at most `max_bytes` of a regular file that is not the daemon's own, in a process of its own: a thread that asks a
 * file system that hangs cannot be ended, nor can its process. Null if the file cannot be read. Throws `unavailable` after
 * 2 s, and at once while an earlier read of this path still hangs; the system's error if no process can be started. One
 * read of a path is under way at a time; calls in the meantime share the next one. For the main thread alone.
 */
export function readOutside(path: string, max_bytes: number, clock = systemClock): Promise<Buffer | null> {
  const reader = readers.get(path) ?? new OutsideReader(path);
  readers.set(path, reader);
  return reader.read(max_bytes, clock);
}

/** The reads of one path. */
class OutsideReader {
  readonly #path: string;
  readonly #reads = new SharedWork<Buffer | null>();
  /** Whether a process that was killed for its time has not ended. */
  #is_hanging = false;

  constructor(path: string) {
    this.#path = path;
  }

  read(max_bytes: number, clock: Clock): Promise<Buffer | null> {
    return this.#reads.run(() => this.#read(max_bytes, clock));
  }

  async #read(max_bytes: number, clock: Clock): Promise<Buffer | null> {
    if (this.#is_hanging) throw this.#late();
    const launcher = (await loadLauncherStarter()).helper(['read', this.#path, String(max_bytes)]);
    if (!('pid' in launcher)) {
      const code = await launcher;
      throw Object.assign(new Error(`a file cannot be read: ${code}`), { code });
    }
    const { pid } = launcher;
    const ended = Promise.withResolvers<number | null>();
    let has_ended = false;
    launcher.onceEnded((status) => {
      has_ended = true;
      this.#is_hanging = false;
      ended.resolve(status?.code ?? null);
    });
    const output = takeAll(launcher.rest());
    let is_late = false;
    const limit = runTime(clock).after(READ_OUTSIDE_TIMEOUT_MS, () => {
      is_late = true;
      this.#is_hanging = !has_ended;
      if (!has_ended) process.kill(pid, 'SIGKILL'); // not waited for yet: the pid is its own
      output.stream.destroy();
      ended.resolve(null);
    });
    const [code] = await Promise.all([ended.promise, output.closed]);
    limit.cancel();
    if (is_late) throw this.#late();
    if (EXHAUSTED.has(code)) throw new ApiError('unavailable', `${this.#path} cannot be read right now.`);
    return code === 0 ? Buffer.concat(output.pieces) : null;
  }

  #late(): ApiError {
    return new ApiError('unavailable', `${this.#path} cannot be read: its file system does not answer.`, {
      path: this.#path,
    });
  }
}

function takeAll(stream: Readable): { stream: Readable; pieces: Buffer[]; closed: Promise<void> } {
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  stream.on('error', () => {}); // 'close' follows
  return { stream, pieces, closed: new Promise((resolve) => stream.once('close', () => resolve())) };
}
