import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { WaitStatus } from './reaper.ts';

/** The launcher, which lies beside this program: `launcher.c` says what it does. */
export const LAUNCHER = fileURLToPath(new URL(`./launcher-${process.arch}`, import.meta.url));

/** A launcher that was started, and what it writes to this program. */
export interface StartedLauncher {
  pid: number;
  /** Reads what it has written within `wait_us`, in place: null if nothing, 0 at the end. Throws the system's error. */
  readSoon(buffer: Buffer, wait_us: number): number | null;
  /** What it has not written yet, or `readSoon` has not read. To be read in the same step. */
  rest(): Readable;
  /** To be called instead of `rest` once `readSoon` has come to the end. */
  close(): void;
  /**
   * Calls `onEnded` once it has ended, or what it has become: right after its status is read, until when the kernel keeps the
   * pid. The status is null if it is unknown.
   */
  onceEnded(onEnded: (status: WaitStatus | null) => void): void;
}

/** How the launcher is started. Where it cannot be, the answer is the system's error code. */
export interface LauncherStarter {
  /**
   * Starts it as the leader of a session of its own, with these variables and files as its first three; one that is undefined
   * becomes /dev/null. What it reports on descriptor 3 can be read.
   */
  program(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    files: readonly (number | undefined)[],
  ): StartedLauncher | Promise<string>;
  /** Starts it as a helper of this program, in its session and without variables. What it writes to stdout can be read. */
  helper(args: readonly string[]): StartedLauncher | Promise<string>;
}
