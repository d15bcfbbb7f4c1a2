import { closeSync, constants, fchownSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { type Clock, sleep } from '../../base/clock.ts';
import { type Backoff, backoffMs } from '../../contract/backoff.ts';
import type { OutputStream } from '../../contract/processes.ts';
import { OUTPUT_STREAMS } from '../../contract/processes.ts';
import type { Outlet } from '../output/outlet.ts';
import { PipeReader } from '../output/pipe-reader.ts';
import { Stdin } from '../stdin.ts';
import { pipePath } from './pipes.ts';
import type { User } from './user.ts';

/** A program opens its stdin in its first seconds or not at all: the last of these waits is 20 s. */
const OPENERS: Backoff = { base_ms: 10, max_ms: 30_000 };
const OPENERS_TRIES = 12;

/** Where the pipes of one run are, and where their output goes. */
export interface PipeSpec extends Outlet {
  /** The folder of the process, which has the pipes. */
  folder: string;
  stdin: 'pipe' | 'ignore';
}

/** Both ends of the named pipes of one run. Pipes are in memory, so opening and closing them does not wait for a disk. */
export class OpenPipes {
  readonly #child_fds: (number | undefined)[] = [];
  readonly #readers: PipeReader[] = [];
  #stdin: Stdin | null = null;

  /** Opens all pipes, or none. Throws the system's error. */
  static open(spec: PipeSpec): OpenPipes {
    const pipes = new OpenPipes();
    try {
      for (const [index, stream] of OUTPUT_STREAMS.entries()) pipes.#openOutput(spec, stream, index + 1);
      if (spec.stdin === 'pipe') pipes.#openStdin(spec);
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
  giveTo({ uid, gid }: User): void {
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

  #openOutput({ folder, logs, onOutput }: PipeSpec, stream: OutputStream, number: number): void {
    const path = pipePath(folder, stream);
    this.#child_fds[number] = openSync(path, constants.O_RDWR);
    this.#readers.push(PipeReader.open(path, logs[stream], (data) => onOutput(stream, data)));
  }

  #openStdin({ folder, clock }: PipeSpec): void {
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
