import { closeSync, constants, fchownSync, openSync, unlinkSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { type Clock, sleep } from '../../base/clock.ts';
import type { Account } from '../../base/linux/accounts.ts';
import { loadLibc } from '../../base/linux/native.ts';
import { type Backoff, backoffMs } from '../../contract/backoff.ts';
import { ApiError } from '../../contract/errors.ts';
import { OUTPUT_STREAMS, type OutputStream } from '../../contract/words.ts';
import { PipeReader } from '../output/pipe-reader.ts';
import { Stdin } from '../stdin.ts';
import type { Outlet } from './launch.ts';

const PIPE_NAMES = [...OUTPUT_STREAMS, 'stdin'] as const;

/** A program opens its stdin in its first seconds or not at all: the last of these waits is 20 s. */
const OPENERS: Backoff = { base_ms: 10, max_ms: 30_000 };
const OPENERS_TRIES = 12;

/** The path of the named pipe of a process's stream. */
export function pipePath(folder: string, name: OutputStream | 'stdin'): string {
  return join(folder, `${name}.pipe`);
}

/**
 * Makes these pipes of a process, for the daemon's account alone. Throws the system's error; without the addon koffi, `unavailable`
 * if the system's mkfifo(1) cannot make them either.
 */
export async function makePipes(folder: string, names: readonly (OutputStream | 'stdin')[]): Promise<void> {
  const paths = names.map((name) => pipePath(folder, name));
  const library = await loadLibc();
  if (library) for (const path of paths) library.makeFifo(path);
  else await makeByTool(paths);
}

/**
 * Removes the pipes of a process. Processes that hold one keep it. Throws the system's error. Another thread finds out
 * whether the disk answers, and the rest is done in place.
 */
export async function removePipes(folder: string): Promise<void> {
  const [first, ...others] = PIPE_NAMES.map((name) => pipePath(folder, name)) as [string, ...string[]];
  await unlink(first).catch(unlessGone);
  for (const pipe of others) {
    try {
      unlinkSync(pipe);
    } catch (error) {
      unlessGone(error);
    }
  }
}

/** Both ends of the named pipes of one run. Pipes are in memory, so opening and closing them does not wait for a disk. */
export class OpenPipes {
  readonly #child_fds: (number | undefined)[] = [];
  readonly #readers: PipeReader[] = [];
  #stdin: Stdin | null = null;

  /** Opens all pipes in a process's folder, or none. Throws the system's error. */
  static open(folder: string, stdin: 'pipe' | 'ignore', outlet: Outlet): OpenPipes {
    const pipes = new OpenPipes();
    try {
      for (const [index, stream] of OUTPUT_STREAMS.entries())
        pipes.#openOutput(folder, stream, index + 1, outlet);
      if (stdin === 'pipe') pipes.#openStdin(folder, outlet.clock);
      return pipes;
    } catch (error) {
      pipes.close();
      throw error;
    }
  }

  /** The process's ends, by number in the process. */
  get child_fds(): readonly (number | undefined)[] {
    return this.#child_fds;
  }

  /** The daemon's end of stdin; null if the process has none. */
  get stdin(): Stdin | null {
    return this.#stdin;
  }

  /** Resolves when no process can write output any more and all of it is in the logs. */
  get output_closed(): Promise<void> {
    return Promise.all(this.#readers.map((reader) => reader.closed)).then(() => {});
  }

  /** Gives the process's ends to its account, so that it can open /dev/stdout and its like. */
  giveTo({ uid, gid }: Account): void {
    for (const fd of this.#openChildFds()) fchownSync(fd, uid, gid);
  }

  /** Copies what is in the pipes now into the logs. */
  drain(): void {
    for (const reader of this.#readers) reader.drain();
  }

  /** Closes the daemon's copies of the process's ends. */
  closeChildEnds(): void {
    for (const fd of this.#openChildFds()) closeSync(fd);
    this.#child_fds.length = 0;
  }

  /** Closes everything. */
  close(): void {
    this.closeChildEnds();
    for (const reader of this.#readers) reader.close();
    this.#stdin?.close();
  }

  #openChildFds(): number[] {
    return this.#child_fds.filter((fd) => fd !== undefined);
  }

  #openOutput(folder: string, stream: OutputStream, number: number, { logs, onOutput }: Outlet): void {
    const path = pipePath(folder, stream);
    this.#child_fds[number] = openSync(path, constants.O_RDWR);
    this.#readers.push(PipeReader.open(path, logs[stream], (data) => onOutput(stream, data)));
  }

  #openStdin(folder: string, clock: Clock): void {
    const path = pipePath(folder, 'stdin');
    // An end of a pipe opens at once only while the other is open: this one is both.
    const both = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    try {
      this.#child_fds[0] = openSync(path, constants.O_RDONLY);
      const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
      const socket = new Socket({ fd, readable: false, writable: true });
      this.#stdin = new Stdin(socket);
      socket.once('close', () => void letOpenersIn(clock, path));
    } finally {
      closeSync(both);
    }
  }
}

/**
 * A process that opens its /dev/stdin waits for a writer, for ever if the last writer has closed already. Opening the
 * pipe for a moment releases it: it then reads what is left, and the end. Repeated while a process may still open it.
 */
async function letOpenersIn(clock: Clock, path: string): Promise<void> {
  for (let attempt = 1; attempt <= OPENERS_TRIES; attempt++) {
    await sleep(clock, backoffMs(attempt, OPENERS));
    try {
      closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK));
    } catch {
      return; // no process reads it any more
    }
  }
}

async function makeByTool(paths: string[]): Promise<void> {
  const { runTool } = await import('../../base/run-tool.ts');
  await runTool(['mkfifo', '-m', '600', '--', ...paths]).catch(({ message }: Error) => {
    throw new ApiError(
      'unavailable',
      `Processes cannot be started: the addon koffi cannot be loaded, and ${message}.`,
    );
  });
}

function unlessGone(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
