import { close as closeCallback, constants, open as openCallback } from 'node:fs';
import { chown } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { execa } from 'execa';
import type { OutputStream, PtySize } from '../contract/processes.ts';
import { OUTPUT_STREAMS } from '../contract/processes.ts';
import { spawnRefusal } from './command.ts';
import type { OutputLog } from './output-log.ts';
import { PipeReader } from './pipe-reader.ts';
import type { PipePool } from './pipes.ts';
import { Stdin } from './stdin.ts';
import type { User } from './user.ts';

const openFile = promisify(openCallback);
const closeFile = promisify(closeCallback);

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
    opened.stdin = new Stdin(new Socket({ fd, readable: false, writable: true }), false);
  } finally {
    await closeFile(both);
  }
}

async function takePipe(spec: LaunchSpec, pipes: PipePool, path: string): Promise<void> {
  await pipes.take(path);
  // So that /dev/stdout and its kin can be opened by the process, too.
  if (spec.user) await chown(path, spec.user.uid, spec.user.gid);
}

async function spawn(spec: LaunchSpec, { child_fds, readers, stdin }: Opened): Promise<Launched> {
  const [argv0, ...args] = spec.argv;
  const subprocess = execa(spec.program, args, {
    argv0,
    cwd: spec.cwd,
    env: spec.env,
    extendEnv: false,
    stdio: [inherited(child_fds[0]), inherited(child_fds[1]), inherited(child_fds[2])],
    buffer: false,
    detached: true,
    cleanup: false,
    reject: false,
    ...(spec.user && { uid: spec.user.uid, gid: spec.user.gid }),
  });
  const { pid } = subprocess;
  if (pid === undefined) throw spawnRefusal((await subprocess).code, argv0);
  const exited = new Promise<ExitStatus>((resolve) => {
    subprocess.nodeChildProcess.once('exit', (code, signal) => resolve({ code, signal }));
  });
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

/** The library's type lists the numbers 3 to 9 for what it passes on as it is. */
function inherited(fd: number | undefined): 3 | 'ignore' {
  return fd === undefined ? 'ignore' : (fd as 3);
}
