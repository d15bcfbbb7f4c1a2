import { getSystemErrorName } from 'node:util';
import { type Clock, runTime } from '../../base/clock.ts';
import type { Account } from '../../base/linux/accounts.ts';
import type { LauncherStarter, StartedLauncher } from '../../base/linux/launcher.ts';
import { given_nice } from '../../base/linux/priority.ts';
import { bootTicks, readProgramName } from '../../base/linux/procfs.ts';
import { loadLauncherStarter } from '../../base/linux/start-launcher.ts';
import {
  LAUNCH_PAUSE_MS,
  LAUNCH_TIMEOUT_MS,
  LAUNCHES_GIVEN_UP_MAX,
  LAUNCHES_MAX,
} from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import { CannotStart, DEFAULT_PATH, notExecutable, notFound, spawnRefusal } from './command.ts';
import type { ExitStatus, Launched } from './launch.ts';

/** A program to start. */
export interface LaunchSpec {
  argv: [string, ...string[]];
  /** Its file: an absolute path, or a bare name, which is searched in the PATH of `env`. */
  file: string;
  /** An absolute path. */
  cwd: string;
  env: Record<string, string>;
  /** The account to change to; null for the daemon's own. */
  user: Account | null;
  /** Whether its stdin becomes its controlling terminal. */
  has_terminal: boolean;
  /** The tag of its tree: one program of a tree is started at a time. */
  mark: string;
}

/** Ends a start whose program does not run yet, with this error. */
type GiveUp = (error: ApiError) => void;

/** The steps of the launcher that can fail, in the order of `launcher.c`. */
const STEPS = ['', 'stdin', 'cwd', 'user', 'terminal', 'missing', 'unusable', 'exec'] as const;
/** Two numbers. The first record says when the process began, a second one what failed. */
const RECORD_BYTES = 8;
/** A program runs after a tenth of a millisecond. To wait for that in place costs less than to be woken for it. */
const IN_PLACE_US = 500;

/**
 * Starts programs by a process of its own for each, which changes the account and the directory, searches the program, and
 * becomes it: whatever of that is in a file system that hangs holds that process alone. One that takes longer than 10 s is
 * killed, which the kernel does not forget: it never becomes the program. Source: contract section 4, "POST /processes".
 */
export class Launcher {
  readonly #clock: Clock;
  /** The starts under way, by their marks. */
  readonly #present = new Map<string, GiveUp>();
  /** Those that were given up and have not ended: their marks by their pids. */
  readonly #given_up = new Map<number, string>();
  #starter: LauncherStarter | null = null;
  #is_closed = false;

  constructor(clock: Clock) {
    this.#clock = runTime(clock);
  }

  /**
   * Starts a program as the leader of its own session and process group, with these files as its stdin, stdout and stderr.
   * Throws the catalogue's error if it cannot be started: `unavailable` if a file system does not answer.
   */
  async start(
    spec: LaunchSpec,
    files: readonly (number | undefined)[],
  ): Promise<Pick<Launched, 'pid' | 'start_ticks' | 'exited' | 'endedTicks'>> {
    this.#starter ??= await loadLauncherStarter();
    this.#checkMayStart(spec);
    const launcher = this.#starter.program(argumentsOf(spec), spec.env, files);
    if (!('pid' in launcher)) throw spawnRefusal(await launcher, spec.argv[0]);
    const { pid } = launcher;
    let ended_ticks: number | null = null;
    const ended = Promise.withResolvers<ExitStatus>();
    launcher.onceEnded((status) => {
      ended_ticks = bootTicks();
      this.#given_up.delete(pid);
      ended.resolve(status);
    });
    const endedTicks = () => ended_ticks;
    const report = await this.#reported(spec, launcher, endedTicks);
    if (report.length > RECORD_BYTES) throw refusal(report.subarray(RECORD_BYTES), spec);
    const start_ticks = report.length === 0 ? 0 : Number(report.readBigUInt64LE());
    return { pid, start_ticks, exited: ended.promise, endedTicks };
  }

  /** Gives the start of this tree up that is under way, if any. */
  giveUp(mark: string, error: ApiError): void {
    this.#present.get(mark)?.(error);
  }

  /** Gives every start up that is under way in a second; returns how to leave them alone. */
  giveUpSoon(error: ApiError): () => void {
    const timer = this.#clock.after(LAUNCH_PAUSE_MS, () => this.#giveAllUp(error));
    return () => timer.cancel();
  }

  /** Gives every start up that is under way; from now on none begins. */
  close(): void {
    this.#is_closed = true;
    this.#giveAllUp(new ApiError('shutting_down'));
  }

  /** Whether this process was given up: it cannot be ended, and never becomes a program. */
  readonly isGivenUp = (pid: number): boolean => this.#given_up.has(pid);

  #giveAllUp(error: ApiError): void {
    for (const giveUp of [...this.#present.values()]) giveUp(error);
  }

  #checkMayStart({ mark, argv }: LaunchSpec): void {
    if (this.#is_closed) throw new ApiError('shutting_down');
    if ([...this.#given_up.values()].includes(mark)) {
      throw new ApiError('unavailable', `${argv[0]}: its last start still hangs in a file system.`);
    }
    if (this.#present.size < LAUNCHES_MAX && this.#given_up.size < LAUNCHES_GIVEN_UP_MAX) return;
    throw new ApiError('too_many_requests', 'Too many starts hang in file systems that do not answer.');
  }

  /** The launcher's records: nothing if it ended before the first. */
  async #reported(
    spec: LaunchSpec,
    launcher: StartedLauncher,
    endedTicks: () => number | null,
  ): Promise<Buffer> {
    const { pid } = launcher;
    const over = Promise.withResolvers<Buffer>();
    const giveUp: GiveUp = (error) => {
      over.reject(error);
      if (endedTicks() !== null) return;
      this.#given_up.set(pid, spec.mark);
      process.kill(pid, 'SIGKILL'); // not waited for yet: the pid is its own
    };
    over.promise.catch(() => {}); // it may be given up before anybody waits
    this.#present.set(spec.mark, giveUp);
    try {
      // Only while no other start is slow: many that hang must not add up.
      const wait_us = this.#present.size === 1 ? IN_PLACE_US : 0;
      const report = Buffer.alloc(2 * RECORD_BYTES);
      let received = 0;
      for (;;) {
        const length = launcher.readSoon(report.subarray(received), wait_us);
        if (length === null) break;
        received += length;
        if (length > 0 && received < report.length) continue;
        launcher.close();
        return report.subarray(0, received);
      }
      const rest = launcher.rest();
      const limit = this.#clock.after(LAUNCH_TIMEOUT_MS, () => giveUp(late(spec, pid)));
      rest.on('data', (data: Buffer) => {
        received += data.copy(report, received);
      });
      rest.on('error', () => {}); // 'close' follows
      rest.once('close', () => over.resolve(report.subarray(0, received)));
      return await over.promise.finally(() => {
        limit.cancel();
        rest.destroy();
      });
    } finally {
      this.#present.delete(spec.mark);
    }
  }
}

function argumentsOf({ argv, file, cwd, user, has_terminal }: LaunchSpec): string[] {
  const account = user === null ? '-' : `${user.uid}:${user.gid}`;
  return [has_terminal ? 'terminal' : 'run', String(given_nice + 20), account, cwd, file, ...argv];
}

/** The error for what the launcher reports. */
function refusal(report: Buffer, { argv, cwd }: LaunchSpec): ApiError {
  const step = STEPS[report.readInt32LE(0)];
  const code = getSystemErrorName(-report.readInt32LE(4));
  const [name] = argv;
  switch (step) {
    case 'cwd':
      if (code === 'ENOTDIR') return new CannotStart('cwd', `${cwd} is not a directory`);
      if (code === 'EACCES') return new CannotStart('cwd', `${cwd} may not be entered by this user`);
      return new CannotStart('cwd', `${cwd} does not exist`);
    case 'user':
      return spawnRefusal('EPERM', name);
    case 'missing':
      return notFound(name);
    case 'unusable':
      return notExecutable(name);
    case 'terminal':
      return new CannotStart('pty', `terminals are not available (${code})`);
    default:
      return spawnRefusal(code, name);
  }
}

/** The error for a start that hangs. The launcher's name says in what. */
function late({ argv: [name], file, cwd, env }: LaunchSpec, pid: number): ApiError {
  const [what, index] = readProgramName(pid).split(' ');
  if (what === 'cwd') return silent('cwd', cwd);
  if (what === 'path') return silent('command', (env.PATH ?? DEFAULT_PATH).split(':')[Number(index)] ?? name);
  return silent('command', file);
}

function silent(field: 'cwd' | 'command', path: string): ApiError {
  return new ApiError('unavailable', `${field}: the file system of ${path} does not answer.`, {
    field,
    path,
  });
}
