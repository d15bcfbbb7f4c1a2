import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Clock } from '../../base/clock.ts';
import type { ProgramSpec } from '../../base/linux/posix-spawn.ts';
import { bootTicks } from '../../base/linux/procfs.ts';
import type { OutputStream } from '../../contract/processes.ts';
import type { PtySize } from '../../contract/schema/process-request.ts';
import type { OutputLog } from '../output/output-log.ts';
import type { Stdin } from '../stdin.ts';
import { checkStart, spawnRefusal } from './command.ts';
import type { User } from './user.ts';

/** A program to start, and its account. */
export interface LaunchSpec extends ProgramSpec {
  /** The account to change to; null for the daemon's own. */
  user: User | null;
}

/** Where the output of a run goes. */
export interface Outlet {
  clock: Clock;
  logs: Record<OutputStream, OutputLog>;
  /** Called with every piece of output before it is logged. */
  onOutput: (stream: OutputStream, data: Buffer) => void;
}

/**
 * How a process ended: a code, or the signal that ended it; null if it is unknown. `core_dumped` is absent if that is
 * not known.
 */
export type ExitStatus = { code: number | null; signal: string | null; core_dumped?: boolean } | null;

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
 * Starts a program as the leader of its own session and process group, with these files as its stdin, stdout and stderr.
 * Throws the catalogue's error if the kernel refuses.
 */
export async function startProgram(
  spec: LaunchSpec,
  child_fds: readonly (number | undefined)[],
): Promise<Pick<Launched, 'pid' | 'exited' | 'endedTicks'>> {
  const start = spec.user === null ? spawnHere : forkAs;
  let ended_ticks: number | null = null;
  const ended = Promise.withResolvers<ExitStatus>();
  const started = await start(spec, child_fds, (status) => {
    ended_ticks = bootTicks();
    ended.resolve(status);
  });
  if (typeof started === 'number')
    return { pid: started, exited: ended.promise, endedTicks: () => ended_ticks };
  checkStart(spec.program, spec.cwd, spec.argv[0]);
  throw spawnRefusal(started, spec.argv[0]);
}

/**
 * Gives the pid, or the code of the system's error. Calls `onEnded` right after the end was read: until then the kernel
 * keeps the pid.
 */
type Start = (
  spec: LaunchSpec,
  child_fds: readonly (number | undefined)[],
  onEnded: (status: ExitStatus) => void,
) => Promise<number | string | undefined>;

const spawnHere: Start = async (spec, child_fds, onEnded) => {
  const { posixSpawn } = await import('../../base/linux/posix-spawn.ts');
  const { onceEnded, openReaper } = await import('../../base/linux/reaper.ts');
  openReaper();
  const started = posixSpawn(spec, child_fds);
  if (started === 'ENOSYS') return forkAs(spec, child_fds, onEnded);
  if (typeof started === 'number') onceEnded(started, onEnded);
  return started;
};

/** Node can also change the account: slower, since it forks the whole daemon. */
const forkAs: Start = async ({ argv: [argv0, ...args], program, cwd, env, user }, child_fds, onEnded) => {
  const stdio = [0, 1, 2].map((fd) => child_fds[fd] ?? 'ignore');
  try {
    const options = { argv0, cwd, env, stdio, detached: true, ...(user && { uid: user.uid, gid: user.gid }) };
    const child = spawn(program, args, options);
    if (child.pid === undefined) throw (await once(child, 'error'))[0];
    child.once('exit', (code, signal) => onEnded({ code, signal }));
    return child.pid;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
};
