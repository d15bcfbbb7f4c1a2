import { close as closeCallback, fchownSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { promisify } from 'node:util';
import type { Terminals } from '@lydell/node-pty/requireBinary.js';
import { atMost } from '../../base/clock.ts';
import type { PtySize } from '../../contract/schema/process-request.ts';
import { Stdin } from '../stdin.ts';
import { CannotStart } from './command.ts';
import type { Launched, Outlet } from './launch.ts';
import type { Launcher, LaunchSpec } from './launcher.ts';

const closeFile = promisify(closeCallback);

/** How long the end of a process waits for the last of its output: a descendant may hold the terminal. */
const LAST_OUTPUT_MS = 100;

/** The most that is read then without waiting for the disk or a follower: a descendant may flood the terminal. */
const REST_MAX_BYTES = 1024 * 1024;

/** The keys with which a terminal in its initial settings sends a signal to its foreground group. */
const SIGNAL_KEYS = new Map([
  [0x03, 'SIGINT'],
  [0x1c, 'SIGQUIT'],
]);

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
  const { closeOnExec } = await import('../../base/linux/libc.ts');
  const { master, slave } = terminals.open(cols, rows);
  // The library leaves both open in every program that is started: it could read what is typed, and would hold the
  // terminal open.
  for (const fd of [master, slave]) closeOnExec(fd);
  const closeSlave = keepOpen(slave);
  const stream = new ReadStream(master);
  try {
    if (spec.user) fchownSync(slave, spec.user.uid, spec.user.gid);
    const program = await launcher.start(spec, [slave, slave, slave]);
    return launched(outlet, terminals, { master, stream, closeSlave }, program, onSignalKey);
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

function launched(
  outlet: Outlet,
  terminals: Terminals,
  { master, stream, closeSlave }: { master: number; stream: ReadStream; closeSlave: () => Promise<void> },
  program: Pick<Launched, 'pid' | 'start_ticks' | 'exited' | 'endedTicks'>,
  onSignalKey: (signal: string) => void,
): Launched {
  const closed = new Promise<void>((resolve) => stream.once('close', resolve));
  const takeRest = takeOutput(stream, outlet);
  const onData = (data: Uint8Array) => {
    for (const [key, signal] of SIGNAL_KEYS) if (data.includes(key)) onSignalKey(signal);
  };
  return {
    ...program,
    stdin: new Stdin(stream, { is_terminal: true, onData }),
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
