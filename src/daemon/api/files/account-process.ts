import type { ChildProcess, SendHandle } from 'node:child_process';
import { closeSync, constants, openSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { fileURLToPath } from 'node:url';
import { atMost, type Clock, runTime, type Timer } from '../../../base/clock.ts';
import { NODE_FLAGS } from '../../../base/engine/flags.ts';
import type { ConnectionHandle } from '../../../base/engine/node-http.ts';
import { startHelper } from '../../../base/linux/helper-process.ts';
import { lowerPriorityOf } from '../../../base/linux/priority.ts';
import { HEAPS_VARIABLE } from '../../../base/node-variables.ts';
import { FILE_CALLS_MAX, FILE_TRANSFERS_MAX } from '../../../contract/defaults.ts';
import { ApiError } from '../../../contract/errors.ts';
import type { AccountSettings, ProgramAnswer } from './account-program.ts';
import type { DirectOrder } from './direct-bodies.ts';

/** Time for a start: a machine that is very busy takes seconds. */
const START_TIMEOUT_MS = 10_000;
/** How often a process with requests is asked whether it still runs, in ms. */
const ASK_MS = 2_000;
/** Time for its answer: it only has to run. */
const ANSWER_TIMEOUT_MS = 5_000;
/** Connections that are kept for the next requests. */
const CONNECTIONS_KEPT = 4;
/** Time to tidy up when the daemon ends. */
const END_GRACE_MS = 1_000;
/** Calls of one process whose clients have gone, and that hang; then another one takes new requests. */
const LEFT_MAX = 32;
/** The longest reason of a failed start that is passed on. */
const REASON_MAX_LENGTH = 200;

/** What a process of an account is made with. */
export interface AccountProcessParts {
  clock: Clock;
  /** The folder of its socket, which only the daemon can enter. */
  folder: string;
  /** The name of its socket there. */
  socket_name: string;
  settings: AccountSettings;
}

/** A request that a process works on. */
export interface AccountUse {
  /** Where it answers. */
  socket_path: string;
  /** Keeps connections to it for the next requests. */
  agent: Agent;
  /** Aborts, with `unavailable`, if the process is lost. */
  lost: AbortSignal;
  /** Passes the kernel's side of a client's connection on, which stays open here. */
  pass: (order: DirectOrder, handle: ConnectionHandle) => void;
  /** To be called once it has become a connection that lasts. */
  lasts: () => void;
  /** To be called at the end. Idempotent. */
  done: () => void;
}

/**
 * A process that answers file requests on a socket. The account's own processes can stop or kill it, and its threads can
 * hang in a file system: it is asked whether it runs while it has requests, and killed if it does not answer.
 */
export class AccountProcess {
  /** Called once it has ended, and the kernel has let go of all its threads. */
  onEnded: () => void = () => {};
  /** Called when a request is done. */
  onDone: () => void = () => {};
  /** Called when it is killed because it does not answer. */
  onLost: () => void = () => {};
  /** Whether new requests go to another one. */
  is_retired = false;
  readonly #parts: AccountProcessParts;
  readonly #clock: Clock;
  readonly #lost = new AbortController();
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: CONNECTIONS_KEPT });
  readonly #folder: number;
  readonly #child: ChildProcess;
  readonly #ready: Promise<void>;
  #uses = 0;
  #lasting = 0;
  #left = 0;
  #asking: Timer | null = null;
  #has_ended = false;

  /** Throws the system's error if no process can be started. */
  constructor(parts: AccountProcessParts) {
    this.#parts = parts;
    this.#clock = runTime(parts.clock);
    const { folder, socket_name, settings } = parts;
    rmSync(`${folder}/${socket_name}`, { force: true });
    this.#folder = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    this.#child = startHelper([process.execPath, ...NODE_FLAGS, programPath(), JSON.stringify(settings)], {
      // Each request has a thread, so that none waits for another one that hangs.
      env: { UV_THREADPOOL_SIZE: String(FILE_CALLS_MAX + FILE_TRANSFERS_MAX), [HEAPS_VARIABLE]: '1' },
      cwd: folder,
      stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
    });
    lowerPriorityOf(this.#child.pid);
    this.#child.stdin?.on('error', () => {});
    this.#child.once('exit', () => this.#end());
    this.#child.unref();
    this.#child.channel?.unref();
    this.#ready = this.#started();
    this.#ready.catch(() => {});
  }

  /** How many requests it works on. */
  get uses(): number {
    return this.#uses;
  }

  /** Whether it works on anything but connections that last. */
  get is_busy(): boolean {
    return this.#uses > this.#lasting;
  }

  /** How many calls it still works on for clients that have gone, while it is not killed. */
  get left(): number {
    return this.#lost.signal.aborted ? 0 : this.#left;
  }

  /** Takes a request, once it is ready. Throws `permission_denied` or `unavailable` if it cannot start. */
  async use(): Promise<AccountUse> {
    this.#uses += 1;
    this.#ask();
    let is_done = false;
    let does_last = false;
    const done = () => {
      if (is_done) return;
      is_done = true;
      this.#uses -= 1;
      if (does_last) this.#lasting -= 1;
      if (this.#uses === 0) {
        this.#asking?.cancel();
        this.#asking = null;
      }
      this.onDone();
    };
    try {
      await this.#ready;
    } catch (error) {
      done();
      throw error;
    }
    return {
      // By its folder's descriptor, because the path of a socket may be too long.
      socket_path: `/proc/self/fd/${this.#folder}/${this.#parts.socket_name}`,
      agent: this.#agent,
      lost: this.#lost.signal,
      pass: (order, handle) => {
        const failed = (error: Error | null) => {
          if (error) this.kill();
        };
        this.#child.send(order, handle as SendHandle, failed);
      },
      lasts: () => {
        does_last = true;
        this.#lasting += 1;
      },
      done,
    };
  }

  /** Kills it, with what it is doing. Not waited for: a thread that hangs keeps it until the kernel lets go. */
  kill(): void {
    this.is_retired = true;
    if (!this.#has_ended) this.#child.kill('SIGKILL');
    this.#lost.abort(lostError());
  }

  /** Ends it: it tidies up, for at most a second. */
  async stop(): Promise<void> {
    this.is_retired = true;
    if (this.#has_ended) return;
    const ended = new Promise<void>((resolve) => {
      this.#child.once('exit', () => resolve());
    });
    this.#child.stdin?.end();
    await atMost(this.#clock, END_GRACE_MS, ended);
    this.kill();
  }

  #started(): Promise<void> {
    const { account } = this.#parts.settings;
    return new Promise((resolve, reject) => {
      const limit = this.#clock.after(START_TIMEOUT_MS, () => fail('it does not start'));
      const fail = (reason: string) => {
        limit.cancel();
        this.kill();
        reject(
          new ApiError('unavailable', `File operations are not possible: ${reason}.`, { retry_after_s: 1 }),
        );
      };
      this.#child.once('error', ({ message }) => fail(message));
      this.#child.once('exit', (code, signal) => fail(`their process ended with ${code ?? signal}`));
      this.#child.on('message', (message: ProgramAnswer) => {
        if ('left' in message) return this.#hear(message);
        limit.cancel();
        if (message.failed === null) return resolve();
        this.kill();
        reject(
          new ApiError('permission_denied', `The daemon may not act as the user ${account?.name}.`, {
            field: 'user',
            reason: message.failed.slice(0, REASON_MAX_LENGTH),
          }),
        );
      });
    });
  }

  /** Asks whether it runs, again and again while it has requests. */
  #ask(): void {
    this.#asking ??= this.#clock.after(ASK_MS, () => {
      this.#asking = this.#clock.after(ANSWER_TIMEOUT_MS, () => {
        this.kill();
        this.onLost();
      });
      this.#child.send({ is_asking: true }, () => {});
    });
  }

  #hear({ left, is_full }: Extract<ProgramAnswer, { left: number }>): void {
    this.#left = left;
    if (left >= LEFT_MAX || is_full) this.is_retired = true;
    this.#asking?.cancel();
    this.#asking = null;
    if (this.#uses > 0 && !this.#has_ended) this.#ask();
  }

  #end(): void {
    this.#has_ended = true;
    this.is_retired = true;
    this.#asking?.cancel();
    this.#lost.abort(lostError());
    this.#agent.destroy();
    closeSync(this.#folder);
    this.onEnded();
  }
}

function lostError(): ApiError {
  return new ApiError('unavailable', 'The process that carries out file operations has ended.', {
    retry_after_s: 1,
  });
}

/** In a bundle, the program lies beside it. */
function programPath(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
  return fileURLToPath(new URL(`./account-program.${extension}`, import.meta.url));
}
