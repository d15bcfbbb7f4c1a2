import { close as closeCallback, fchownSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { promisify } from 'node:util';
import type { Terminals } from '@lydell/node-pty/requireBinary.js';
import { atMost } from '../../base/clock.ts';
import { loadLibc } from '../../base/linux/native.ts';
import type { TerminalSettings } from '../../base/linux/termios.ts';
import type { PtySize } from '../../contract/processes.ts';
import { Stdin, type StdinOptions } from '../stdin.ts';
import { CannotStart } from './command.ts';
import type { Launched, Outlet } from './launch.ts';
import type { Launcher, LaunchSpec } from './launcher.ts';
import { TypedLine } from './typed-line.ts';

const closeFile = promisify(closeCallback);

/** How long the end of a process waits for the last of its output: a descendant may hold the terminal. */
const LAST_OUTPUT_MS = 100;

/** The most that is read then without waiting for the disk or a follower: a descendant may flood the terminal. */
const REST_MAX_BYTES = 1024 * 1024;

/**
 * Starts a process at a terminal of its own, which is its stdin and its output.
 * `onSignalKey` is called with the signal of each signal key. Throws CannotStart.
 */
export async function launchTerminal(
  launcher: Launcher,
  spec: LaunchSpec,
  { cols, rows }: PtySize,
  outlet: Outlet,
  onSignalKey: (signal: string) => void,
): Promise<Launched> {
  const terminals = await loadLibrary();
  const library = await loadLibc();
  if (library === null) throw new CannotStart('pty', 'terminals are not available (koffi cannot be loaded)');
  const { terminalSettings } = await import('../../base/linux/termios.ts');
  const { master, slave } = terminals.open(cols, rows);
  // The library leaves both open in every program that is started: it could read what is typed, and would hold the
  // terminal open.
  for (const fd of [master, slave]) library.closeOnExec(fd);
  const closeSlave = keepOpen(slave);
  const stream = new ReadStream(master);
  try {
    if (spec.user) fchownSync(slave, spec.user.uid, spec.user.gid);
    const program = await launcher.start(spec, [slave, slave, slave]);
    const settings = () => (stream.destroyed ? null : terminalSettings(master));
    const stdin = new Stdin(stream, keys(settings, onSignalKey));
    return launched(outlet, terminals, { master, stream, closeSlave, stdin }, program);
  } catch (error) {
    stream.destroy();
    await closeSlave();
    throw error;
  }
}

/**
 * Keeps the program's end of the terminal open until the returned function is called, once the program has ended. A
 * program may close its own before it ends, as the coreutils do: that would hang the terminal up, and the kernel would
 * kill the program with SIGHUP.
 */
function keepOpen(slave: number): () => Promise<void> {
  let closed: Promise<void> | null = null;
  return () => {
    closed ??= closeFile(slave);
    return closed;
  };
}

/** Loaded on demand: it is native code that most sandboxes never need. */
async function loadLibrary(): Promise<Terminals> {
  try {
    return (await import('@lydell/node-pty/requireBinary.js')).requireBinary('pty.node');
  } catch (error) {
    throw new CannotStart('pty', `terminals are not available (${(error as Error).message})`);
  }
}

/** The daemon's end of a terminal. */
interface OpenTerminal {
  master: number;
  stream: ReadStream;
  closeSlave: () => Promise<void>;
  stdin: Stdin;
}

/** What is typed, under the settings that the terminal has when it is typed. */
function keys(settings: () => TerminalSettings | null, onSignalKey: (signal: string) => void): StdinOptions {
  const line = new TypedLine();
  return {
    onData: (data) => {
      const present = settings();
      if (present) for (const signal of line.type(data, present)) onSignalKey(signal);
    },
    endKeys: () => {
      const present = settings();
      return present && line.typeEnd(present);
    },
  };
}

function launched(
  outlet: Outlet,
  terminals: Terminals,
  { master, stream, closeSlave, stdin }: OpenTerminal,
  program: Pick<Launched, 'pid' | 'start_ticks' | 'exited' | 'endedTicks'>,
): Launched {
  const closed = new Promise<void>((resolve) => stream.once('close', resolve));
  const takeRest = takeOutput(stream, outlet);
  return {
    ...program,
    stdin,
    exited: program.exited.then(async (status) => {
      takeRest();
      await closeSlave();
      // The hang-up of the terminal follows the last output of its session leader.
      await atMost(outlet.clock, LAST_OUTPUT_MS, closed);
      return status;
    }),
    output_closed: closed,
    drain: () => {},
    close: () => {
      stream.destroy();
      void closeSlave();
    },
    resize: ({ cols, rows }) => {
      if (!stream.destroyed) terminals.resize(master, cols, rows);
    },
  };
}

/** Logs what is written to the terminal. Call the returned function once its program has ended: the rest is then read. */
function takeOutput(stream: ReadStream, { logs: { stdout }, onOutput }: Outlet): () => void {
  stream.on('error', () => {}); // EIO: the last process at the terminal has ended; 'close' follows
  let rest_bytes = 0;
  stream.on('data', (data: Buffer) => {
    onOutput('stdout', data);
    stdout.append(data);
    rest_bytes -= data.length;
    if (!stdout.is_full || rest_bytes > 0) return;
    stream.pause();
    void stdout.whenRoom().then(() => stream.resume());
  });
  return () => {
    rest_bytes = REST_MAX_BYTES;
    stream.resume();
  };
}
