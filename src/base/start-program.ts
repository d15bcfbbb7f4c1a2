import type { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { systemClock } from './clock.ts';

/** This program's directory: a child finds it by this path also if it is removed, or may not be entered by its name. */
const HERE = '/proc/self/cwd';
/** How long after its end a program's output is waited for, in ms: programs that it left behind may hold its pipes. */
const LEFT_OUTPUT_MS = 100;

/** A pipe to a program beyond its stdin. */
export const TO_PROGRAM = { value: 'pipe', input: true } as const;

/** A file of a program: a pipe to this one, nothing, this program's own, a descriptor, or what a stream has open. */
export type ProgramFile =
  | ('pipe' | 'ignore' | 'inherit' | number | Readable | Writable)
  | typeof TO_PROGRAM
  | null;

/** Options of a program that is started and supervised. */
export interface ProgramOptions {
  /** All variables that it gets: nothing of this program's own is added. */
  env: Readonly<Record<string, string | undefined>>;
  /** Default: this program's directory. */
  cwd?: string;
  /** By their number in it. */
  stdio: readonly ProgramFile[];
  /** Whether it leads a session of its own. It outlives this program either way. */
  is_detached?: boolean;
  /** The name that it is given; default: its file's. */
  argv0?: string;
  /** Whether it has a channel for messages in the engine's own format, after its files. */
  has_channel?: boolean;
  /** How long it may run: then it gets SIGTERM, and SIGKILL 5 s later. Default: 0, as long as it takes. */
  timeout_ms?: number;
}

/** How a program ended. */
export interface ProgramEnd {
  /** Null if a signal ended it, or if it was not started. */
  code: number | null;
  signal: string | null;
  is_late: boolean;
  /** The system's error code if it could not be started. */
  refusal: string | null;
}

/** A program that was started, unless its `pid` is undefined. */
export interface StartedProgram {
  child: ChildProcess;
  /** Resolves once it has ended and its output is read. Never rejects. */
  ended: Promise<ProgramEnd>;
}

type StartProgram = (command: readonly string[], options: ProgramOptions) => StartedProgram;

let loaded: Promise<StartProgram> | null = null;

/**
 * Loads what starts and supervises programs: execa. It takes 3 MB, which a program that starts none does without. Nothing is
 * added to what the caller says: no variables, no memory for output, and no end with this program.
 */
export function loadStartProgram(): Promise<StartProgram> {
  loaded ??= import('execa').then(({ execa }) => (command, options) => {
    const {
      env,
      cwd = HERE,
      stdio,
      is_detached = false,
      argv0,
      has_channel = false,
      timeout_ms = 0,
    } = options;
    const [file = '', ...args] = command;
    const running = execa(file, args, {
      ...{ env, extendEnv: false, cwd, detached: is_detached, ipc: has_channel, timeout: timeout_ms },
      ...(argv0 === undefined ? {} : { argv0 }),
      ...{
        stdio: stdio as unknown as ['pipe', 'pipe', 'pipe'],
        buffer: false,
        reject: false,
        cleanup: false,
      },
    });
    const child = running.nodeChildProcess;
    child.on('error', () => {}); // of what is sent or done to it too late: its end follows
    child.once('exit', () => letPipesGo(child));
    const ended = running.then(({ exitCode, signal, timedOut, code }) => ({
      code: exitCode ?? null,
      signal: signal ?? null,
      is_late: timedOut,
      refusal: child.pid === undefined ? (code ?? 'UNKNOWN') : null,
    }));
    return { child, ended };
  });
  return loaded;
}

/** Starts a program, as `loadStartProgram` says. */
export async function startProgram(
  command: readonly string[],
  options: ProgramOptions,
): Promise<StartedProgram> {
  return (await loadStartProgram())(command, options);
}

/** Leaves a program to itself that outlives this one: its supervision takes 17 KB as long as it lasts. */
export function leaveProgram({ child }: StartedProgram): void {
  child.unref();
  child.removeAllListeners();
}

/** Closes what a program has left open to programs of its own, once nothing more comes of it; whoever reads slowly is waited for. */
function letPipesGo(child: ChildProcess): void {
  const pipes = child.stdio.filter((pipe) => pipe instanceof Socket);
  let before_bytes = -1;
  const look = () => {
    if (pipes.every(({ destroyed }) => destroyed)) return;
    const read_bytes = pipes.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
    if (read_bytes === before_bytes)
      for (const pipe of pipes) if (pipe.readableFlowing && pipe.readableLength === 0) pipe.destroy();
    before_bytes = read_bytes;
    // After a busy moment what is there may wait to be read.
    systemClock.after(LEFT_OUTPUT_MS, () => setImmediate(look));
  };
  look();
}
