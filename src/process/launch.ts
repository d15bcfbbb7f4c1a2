import { close as closeCallback, closeSync, constants, open as openCallback, openSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Clock, sleep } from '../base/clock.ts';
import type { OutputStream, PtySize } from '../contract/processes.ts';
import { OUTPUT_STREAMS } from '../contract/processes.ts';
import { spawnRefusal } from './command.ts';
import { coveredTerminals } from './leaked-terminals.ts';
import type { OutputLog } from './output-log.ts';
import { PipeReader } from './pipe-reader.ts';
import type { PipePool } from './pipes.ts';
import { Stdin } from './stdin.ts';
import type { User } from './user.ts';

const openFile = promisify(openCallback);
const closeFile = promisify(closeCallback);

/** A program opens its stdin in its first seconds or not at all. */
const OPENERS_WAIT_MS = 30_000;

/** Everything that is needed to start a process once. */
export interface LaunchSpec {
  argv: [string, ...string[]];
  /** The file that `argv[0]` means. */
  program: string;
  cwd: string;
  env: Record<string, string>;
  user: User | null;
  stdin: 'pipe' | 'ignore';
  pty: PtySize | null;
  clock: Clock;
  folder: string;
  logs: Record<OutputStream, OutputLog>;
  /** Is shown every piece of output before it is logged. */
  see: (stream: OutputStream, data: Buffer) => void;
}

/** How a process ended: a code, or the signal that ended it; null where nobody can know. */
export type ExitStatus = { code: number | null; signal: string | null } | null;

/** A process that runs, as far as starting and stopping it goes. */
export interface Launched {
  pid: number;
  stdin: Stdin | null;
  /** Resolves when the process itself has ended, whoever still holds its pipes. */
  exited: Promise<ExitStatus>;
  /** Resolves when nobody can write output any more and all of it is in the logs. */
  output_closed: Promise<void>;
  /** Takes into the logs what is in the pipes now. */
  drain(): void;
  /** Stops reading; for a process that is given up. */
  close(): void;
  resize?(size: PtySize): void;
}

/** Where the named pipe of a process's stream is. */
export function pipePath(folder: string, name: OutputStream | 'stdin'): string {
  return join(folder, `${name}.pipe`);
}

/**
 * Starts a process with named pipes, as the leader of its own session and process group, once `recorded` resolves.
 * Throws the catalogue's error where the kernel refuses.
 */
export async function launch(spec: LaunchSpec, pipes: PipePool, recorded: Promise<void>): Promise<Launched> {
  const opened: Opened = { child_fds: [], readers: [], stdin: null };
  try {
    // All of them to their end, also when one fails: what is opened later would not be closed.
    const steps = await Promise.allSettled([
      ...OUTPUT_STREAMS.map((stream, index) => openOutput(spec, pipes, stream, index + 1, opened)),
      spec.stdin === 'pipe' ? openStdin(spec, pipes, opened) : null,
      recorded,
    ]);
    for (const step of steps) if (step.status === 'rejected') throw step.reason;
    return await spawn(spec, opened);
  } catch (error) {
    for (const reader of opened.readers) reader.close();
    opened.stdin?.close();
    throw error;
  } finally {
    await Promise.all(opened.child_fds.filter((fd) => fd !== undefined).map((fd) => closeFile(fd)));
  }
}

interface Opened {
  /** By number in the child. */
  child_fds: (number | undefined)[];
  readers: PipeReader[];
  stdin: Stdin | null;
}

async function openOutput(
  spec: LaunchSpec,
  pipes: PipePool,
  stream: OutputStream,
  number: number,
  opened: Opened,
): Promise<void> {
  const path = pipePath(spec.folder, stream);
  await takePipe(spec, pipes, path);
  opened.child_fds[number] = await openFile(path, constants.O_RDWR);
  const see = (data: Buffer) => spec.see(stream, data);
  opened.readers.push(await PipeReader.open(path, spec.logs[stream], see));
}

async function openStdin(spec: LaunchSpec, pipes: PipePool, opened: Opened): Promise<void> {
  const path = pipePath(spec.folder, 'stdin');
  await takePipe(spec, pipes, path);
  // An end of a pipe opens at once only while the other is open: this one is both.
  const both = await openFile(path, constants.O_RDWR | constants.O_NONBLOCK);
  try {
    opened.child_fds[0] = await openFile(path, constants.O_RDONLY);
    const fd = await openFile(path, constants.O_WRONLY | constants.O_NONBLOCK);
    const socket = new Socket({ fd, readable: false, writable: true });
    opened.stdin = new Stdin(socket);
    socket.once('close', () => letOpenersIn(spec.clock, path));
  } finally {
    await closeFile(both);
  }
}

/**
 * Who opens /dev/stdin of a process waits for a writer, for ever when the last one has closed already. Opening the
 * pipe for a moment lets it in, to read what is left and the end. Repeated while somebody may still come.
 */
async function letOpenersIn(clock: Clock, path: string): Promise<void> {
  for (let delay_ms = 10; delay_ms < OPENERS_WAIT_MS; delay_ms *= 2) {
    await sleep(clock, delay_ms);
    const fd = await openFile(path, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => null);
    if (fd === null) return; // nobody reads it any more
    await closeFile(fd);
  }
}

async function takePipe(spec: LaunchSpec, pipes: PipePool, path: string): Promise<void> {
  await pipes.take(path);
  // So that /dev/stdout and its kin can be opened by the process, too.
  if (spec.user) await chown(path, spec.user.uid, spec.user.gid);
}

async function spawn(spec: LaunchSpec, { child_fds, readers, stdin }: Opened): Promise<Launched> {
  const { pid, exited } = await startProgram(spec, child_fds);
  return {
    pid,
    stdin,
    exited,
    output_closed: Promise.all(readers.map((reader) => reader.closed)).then(() => {}),
    drain: () => {
      for (const reader of readers) reader.drain();
    },
    close: () => {
      for (const reader of readers) reader.close();
      stdin?.close();
    },
  };
}

/**
 * Starts the program itself, in a session of its own, with these files as its stdin, stdout and stderr.
 * Throws the catalogue's error where the kernel refuses.
 */
export async function startProgram(
  spec: LaunchSpec,
  child_fds: readonly (number | undefined)[],
): Promise<{ pid: number; exited: Promise<ExitStatus> }> {
  const { execa } = await import('execa');
  const [argv0, ...args] = spec.argv;
  const { stdio, uncover } = stdioOf(child_fds);
  const subprocess = execa(spec.program, args, {
    argv0,
    cwd: spec.cwd,
    env: spec.env,
    extendEnv: false,
    stdio,
    buffer: false,
    detached: true,
    cleanup: false,
    reject: false,
    ...(spec.user && { uid: spec.user.uid, gid: spec.user.gid }),
  });
  uncover();
  const { pid } = subprocess;
  if (pid === undefined) throw spawnRefusal((await subprocess).code, argv0);
  const exited = new Promise<ExitStatus>((resolve) => {
    subprocess.nodeChildProcess.once('exit', (code, signal) => resolve({ code, signal }));
  });
  return { pid, exited };
}

type Inherited = 3 | 'ignore';

/** What the child finds under its first numbers, and under those of the daemon's terminals. */
function stdioOf(child_fds: readonly (number | undefined)[]): {
  stdio: [Inherited, Inherited, Inherited, ...Inherited[]];
  uncover: () => void;
} {
  const stdio: [Inherited, Inherited, Inherited, ...Inherited[]] = [
    inherited(child_fds[0]),
    inherited(child_fds[1]),
    inherited(child_fds[2]),
  ];
  const covered = coveredTerminals();
  if (covered.size === 0) return { stdio, uncover: () => {} };
  const cover = openSync('/dev/null', constants.O_RDWR);
  for (const fd of covered) {
    while (stdio.length <= fd) stdio.push('ignore'); // leaves these numbers as they are: closed
    stdio[fd] = inherited(cover);
  }
  return { stdio, uncover: () => closeSync(cover) };
}

/** The library's type lists the numbers 3 to 9 for what it passes on as it is. */
function inherited(fd: number | undefined): Inherited {
  return fd === undefined ? 'ignore' : (fd as 3);
}
