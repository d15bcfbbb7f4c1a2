import { closeSync, constants, openSync } from 'node:fs';
import { bootTicks } from '../../base/linux/procfs.ts';
import type { PtySize } from '../../contract/schema/process-request.ts';
import type { Stdin } from '../stdin.ts';
import { checkStart, spawnRefusal } from './command.ts';
import { coveredTerminals } from './leaked-terminals.ts';
import type { OpenPipes } from './open-pipes.ts';
import type { User } from './user.ts';

/** What is started, and as whom. */
export interface LaunchSpec {
  argv: [string, ...string[]];
  /** The file that `argv[0]` names. */
  program: string;
  cwd: string;
  env: Record<string, string>;
  /** The account to change to; null for the daemon's own. */
  user: User | null;
}

/** How a process ended: a code, or the signal that ended it; null if it is unknown. */
export type ExitStatus = { code: number | null; signal: string | null } | null;

/** The daemon's handle of a started process. */
export interface Launched {
  pid: number;
  stdin: Stdin | null;
  /** Resolves when the process itself has ended, even if descendants still hold its pipes. */
  exited: Promise<ExitStatus>;
  /**
   * Null while the pid is its own; afterwards when it was last seen, in ticks after boot, or 0 if that is unknown.
   * The answer holds for the present step: a signal that is sent in the same step reaches no other process.
   */
  endedTicks(): number | null;
  /** Resolves when no process can write output any more and all of it is in the logs. */
  output_closed: Promise<void>;
  /** Copies what is in the pipes now into the logs. */
  drain(): void;
  /** Stops reading. The process is left alone. */
  close(): void;
  /** Changes the size of its terminal; absent if it has none. */
  resize?(size: PtySize): void;
}

/**
 * Starts a process with these pipes, as the leader of its own session and process group.
 * Throws the catalogue's error if the kernel refuses.
 */
export async function launch(spec: LaunchSpec, pipes: OpenPipes): Promise<Launched> {
  const program = await startProgram(spec, pipes.child_fds);
  pipes.closeChildEnds();
  return {
    ...program,
    stdin: pipes.stdin,
    output_closed: pipes.output_closed,
    drain: () => pipes.drain(),
    close: () => pipes.close(),
  };
}

/**
 * Starts the program itself, in a session of its own, with these files as its stdin, stdout and stderr.
 * Throws the catalogue's error if the kernel refuses.
 */
export async function startProgram(
  spec: LaunchSpec,
  child_fds: readonly (number | undefined)[],
): Promise<Pick<Launched, 'pid' | 'exited' | 'endedTicks'>> {
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
  if (pid === undefined) {
    const { code } = await subprocess;
    await checkStart(spec.program, spec.cwd, argv0);
    throw spawnRefusal(code, argv0);
  }
  let ended_ticks: number | null = null;
  const exited = new Promise<ExitStatus>((resolve) => {
    // The kernel keeps the pid until the end is read, which happens right before this event.
    subprocess.nodeChildProcess.once('exit', (code, signal) => {
      ended_ticks = bootTicks();
      resolve({ code, signal });
    });
  });
  return { pid, exited, endedTicks: () => ended_ticks };
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
