import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { type Clock, runTime, sleep } from '../base/clock.ts';
import { makeFolder } from '../base/folder.ts';
import { readBootId } from '../base/linux/procfs.ts';
import type { Log } from '../base/log.ts';
import type { Service } from '../base/service.ts';
import { Slots } from '../base/slots.ts';
import { ApiError } from '../contract/errors.ts';
import type { ResourceUsage } from '../contract/field.ts';
import type { ProcessRequest, ProcessView, PtySize } from '../contract/processes.ts';
import type { ProcessState } from '../contract/words.ts';
import type { ProcessContext } from './context.ts';
import { Emptying } from './emptying.ts';
import { endAll } from './end-all.ts';
import { type Emit, WaitingEvents } from './event-queue.ts';
import { OomWatch } from './exit/oom.ts';
import { LeftProcesses, stillReading, unreadError } from './left-processes.ts';
import { OutputCopies } from './output/copies.ts';
import {
  type OutputItems,
  type OutputOptions,
  type OutputTail,
  outputTail,
  readOutput,
} from './output/output-reader.ts';
import { ProcessPause } from './pausing.ts';
import { SupervisedProcess } from './process.ts';
import { newRecord } from './record.ts';
import { type ListPlace, type ProcessPage, ProcessRegistry } from './registry.ts';
import { readRequest, StartRoom } from './request.ts';
import { ProcessRetention } from './retention.ts';
import { endedConflict } from './run.ts';
import { commandOf } from './start/command.ts';
import { Launcher } from './start/launcher.ts';
import type { StdinWrite } from './stdin.ts';
import { Freezer } from './tree/freezer.ts';
import { parseSignal } from './tree/signals.ts';
import { TreeFinder } from './tree/tree.ts';

/** Options of a supervisor. */
export interface SupervisorOptions {
  clock: Clock;
  log: Log;
  /** `<state-dir>/processes`; created with mode 0700 if missing. */
  directory: string;
  /** Stores an event durably. While it rejects, the event is kept and tried again. */
  emit: Emit;
  /** The plain environment of children, without the daemon's secrets. Read at each start. */
  environment: () => Record<string, string>;
  /** The account of processes whose request names none; null is the daemon's own. */
  default_user: string | null;
  /** From SIGTERM to SIGKILL, unless a request names another, and the longest wait for the last events. */
  grace_ms: number;
  /** Numbers from 0 to 1, for jitter. */
  random?: () => number;
}

/** Additions to a start. */
export interface SpawnExtras {
  /** Reads the output no further than a little until the first lossless follower has come, or for 60 s. */
  lossless?: boolean;
  /** Both streams of the process are also copied there. */
  copy_to?: { stdout: Writable };
  /** Replaces an ended process with the same id, instead of returning it. */
  replace_ended?: boolean;
}

/** `created` is false if a process with this id and request existed before. */
export interface SpawnResult {
  created: boolean;
  process: ProcessView;
}

/** A wait for the end with all output readable, or for the first readiness. */
export interface WaitOptions {
  for: 'exit' | 'ready';
  /** Without it, only `signal` ends the wait. */
  timeout_ms?: number;
  signal?: AbortSignal;
}

/** Whole requests in memory at a time, besides those of starts. */
const LARGE_AT_ONCE = 4;

/** Shared: making an error for each wait takes longer than ending it. */
const OVER = new Error('the wait is over');

/**
 * Starts, follows and ends processes. Every method that takes a `process_id` throws `not_found` for an unknown one.
 * Source: contract section 4, rows `/processes…` and the paragraphs below the options.
 */
export class Supervisor implements Service {
  readonly #options: SupervisorOptions;
  readonly #launcher: Launcher;
  readonly #trees: TreeFinder;
  readonly #oom = new OomWatch();
  readonly #registry: ProcessRegistry;
  readonly #freezer: Freezer;
  readonly #copies: OutputCopies;
  readonly #pause: ProcessPause;
  readonly #emptying: Emptying;
  readonly #retention: ProcessRetention;
  readonly #left: LeftProcesses;
  readonly #waiting = new WaitingEvents();
  readonly #starts = new StartRoom();
  readonly #large = new Slots(LARGE_AT_ONCE);
  #boot_id = '';
  #stopped: Promise<void> | null = null;

  /** Nothing happens before `start`. */
  constructor(options: SupervisorOptions) {
    const { clock, log, directory } = options;
    this.#options = options;
    this.#launcher = new Launcher(clock);
    this.#trees = new TreeFinder(this.#launcher.isGivenUp);
    this.#registry = new ProcessRegistry(this.#trees);
    this.#freezer = new Freezer(clock, log, this.#trees, directory);
    this.#copies = new OutputCopies(clock);
    this.#pause = new ProcessPause(
      this.#freezer,
      this.#registry,
      this.#launcher,
      () => this.#stopped !== null,
    );
    this.#emptying = new Emptying({
      ...{ options, pause: this.#pause, launcher: this.#launcher },
      ...{ registry: this.#registry, trees: this.#trees },
    });
    this.#retention = new ProcessRetention({
      ...options,
      registry: this.#registry,
      copies: this.#copies,
      onSweep: () => {
        if (!this.is_paused) void this.#left.retry();
      },
    });
    this.#left = new LeftProcesses({
      directory,
      context: () => this.#context(),
      registry: this.#registry,
      onLive: (processes) => this.#pause.releaseStopped(processes),
      sweep: () => this.#retention.sweep(),
    });
  }

  /** Recovers what an earlier daemon left: running processes and unsent events; ended ones follow in the background. */
  async start(): Promise<void> {
    const { directory } = this.#options;
    this.#boot_id = readBootId();
    await makeFolder(directory);
    await this.#trees.open();
    await Promise.all([this.#oom.open(), this.#freezer.open()]);
    await this.#left.recover();
    this.#retention.start();
  }

  /**
   * Ends every tree, SIGTERM first and SIGKILL after the grace. Resolves when their ends are stored, or kept for the
   * next daemon. Idempotent.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /**
   * Starts a process. The same id with the same request gives the existing process; with another request it is
   * `conflict`. Throws CannotStart, which names the field, if the program cannot be started: there is no event then,
   * and the id stays free. Throws `too_many_requests` at the limit, `conflict` while paused, `shutting_down`.
   */
  async spawn(request: ProcessRequest, extras: SpawnExtras = {}): Promise<SpawnResult> {
    const process_id = request.process_id ?? this.#registry.newId();
    const { clock, directory } = this.#options;
    const record = newRecord(process_id, request, clock.wallMs(), extras.lossless ?? false);
    const { fingerprint } = record;
    await this.#left.known(process_id);
    if (extras.replace_ended) await this.#retention.removeEnded(process_id);
    await this.#retention.removed(process_id);
    const known = this.#registry.findSame(process_id, fingerprint);
    if (known !== null) {
      const process = await known;
      this.#copies.start(process_id, process, extras.copy_to?.stdout);
      return { created: false, process: await process.view() };
    }
    this.#checkMayStart(process_id);
    const folder = join(directory, process_id);
    const starting = this.#starts.run(request, () =>
      SupervisedProcess.start(this.#context(), folder, record, request),
    );
    const process = await this.#registry.addStarting(process_id, fingerprint, starting);
    this.#copies.start(process_id, process, extras.copy_to?.stdout);
    return { created: true, process: await process.view([]) };
  }

  /**
   * At most `limit` processes, those created last first, from `place` on. Throws `outbox_unavailable` while ended ones of
   * an earlier daemon are still being read, for longer than a moment.
   */
  async page(limit: number, place: ListPlace | null): Promise<ProcessPage> {
    if (!(await this.#left.allKnown())) throw stillReading();
    return this.#registry.page(limit, place);
  }

  /** The number of processes by state, of those that are known by now. */
  counts(): Record<ProcessState, number> {
    return this.#registry.counts();
  }

  /** One process, with its whole command. */
  async get(process_id: string): Promise<ProcessView> {
    const process = await this.#find(process_id);
    const view = await process.view();
    if (!view.command_truncated) return view;
    const request = await this.#large.run(() => this.#requestOf(process_id)).catch(() => null);
    return request ? { ...view, command: commandOf(request), command_truncated: false } : view;
  }

  /** Reads kept output and follows it; see readOutput for the errors of a wrong offset. */
  async output(process_id: string, query: OutputOptions): Promise<OutputItems> {
    return readOutput(await this.#find(process_id), query);
  }

  /** The last `max_bytes` of each stream. */
  async outputTail(process_id: string, max_bytes: number): Promise<OutputTail> {
    return outputTail((await this.#find(process_id)).output.logs, max_bytes);
  }

  /**
   * The process once it has ended or is ready; null if the time is over first, or `signal` aborts. Throws `conflict` if
   * it ends before it is ready, or has no ready probe. Source: contract section 4, GET `/processes/{id}/wait`.
   */
  async wait(process_id: string, query: WaitOptions): Promise<ProcessView | null> {
    const { timeout_ms, signal } = query;
    const process = await this.#find(process_id);
    const { changes } = process.output;
    const over = new AbortController();
    const until = signal ? AbortSignal.any([signal, over.signal]) : over.signal;
    if (timeout_ms !== undefined)
      void sleep(runTime(this.#options.clock), timeout_ms, until).then(() => over.abort(OVER));
    try {
      for (;;) {
        const seen = changes.version;
        if (hasCome(process, query.for)) return process.view();
        if (until.aborted) return null;
        await changes.after(seen, until);
      }
    } finally {
      over.abort(OVER);
    }
  }

  /** Resolves when the process's pipe has taken everything; waits while it is full. See Stdin for the errors. */
  async writeStdin(process_id: string, write: StdinWrite): Promise<void> {
    await this.#live(process_id).stdin().write(write);
  }

  /** Sends a signal, by name or number. Throws `conflict` if the process has ended, `invalid_request` for an unknown signal. */
  signal(process_id: string, signal: string, scope: 'group' | 'leader' = 'group'): void {
    this.#live(process_id).signal(parseSignal(signal), scope);
  }

  /** Forwards a signal of the daemon's own; after SIGTERM and SIGINT no restart follows. Throws `conflict` if it has ended. */
  forward(process_id: string, signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void {
    this.#live(process_id).signal(signal, 'leader', signal !== 'SIGHUP');
  }

  /** Sends SIGKILL to every process that runs. */
  kill(): void {
    for (const process of this.#registry.all()) {
      if (process.record.end) continue;
      try {
        process.signal('SIGKILL', 'group');
      } catch {} // it has ended meanwhile
    }
  }

  /** Changes the size of a terminal. Throws `conflict` if the process has ended or has no terminal. */
  resize(process_id: string, size: PtySize): void {
    this.#live(process_id).resize(size);
  }

  /** Whether a process has, or had, a terminal. */
  async hasTerminal(process_id: string): Promise<boolean> {
    return (await this.#find(process_id)).record.request.pty !== undefined;
  }

  /**
   * Ends a process and everything it started, SIGTERM first; gives the ended process. Does nothing to one that has
   * ended. Throws `timeout` if the kernel does not let it end.
   */
  async remove(process_id: string, grace_ms = this.#options.grace_ms): Promise<ProcessView> {
    const process = await this.#find(process_id);
    await process.terminate(grace_ms);
    return process.view();
  }

  /** Ends a process and starts its request anew under its id; its output so far is gone. Errors as of both. */
  async restart(process_id: string): Promise<ProcessView> {
    await this.#find(process_id);
    const request = await this.#requestOf(process_id);
    this.#checkMayStart(process_id);
    await this.remove(process_id);
    return (await this.spawn({ ...request, process_id }, { replace_ended: true })).process;
  }

  /** Resolves with the ended process once no restart follows, its output is kept and its copy is written. */
  async finished(process_id: string): Promise<ProcessView> {
    const process = await this.#find(process_id);
    await process.drained();
    await this.#copies.finished(process_id);
    return process.view();
  }

  /** See `Emptying.pause`. */
  async pause(memory = true): Promise<void> {
    await this.#left.allKnown();
    return this.#emptying.pause(memory);
  }

  /** See `Emptying.resume`. */
  async resume(memory = true): Promise<void> {
    return this.#emptying.resume(memory);
  }

  /** Whether the processes are paused. */
  get is_paused(): boolean {
    return this.#pause.is_paused;
  }

  /** What all supervised trees use together. */
  async usage(): Promise<ResourceUsage> {
    return this.#registry.usage();
  }

  /** The process with this id, also if an earlier daemon left it. Throws `not_found` for an unknown id. */
  async #find(process_id: string): Promise<SupervisedProcess> {
    await this.#left.known(process_id);
    return this.#registry.get(process_id);
  }

  #requestOf(process_id: string): Promise<ProcessRequest> {
    return readRequest(join(this.#options.directory, process_id));
  }

  /** The process with this id. Throws `conflict` for one that ended under an earlier daemon, `not_found` for an unknown id. */
  #live(process_id: string): SupervisedProcess {
    if (this.#left.has(process_id)) throw endedConflict();
    return this.#registry.get(process_id);
  }

  #checkMayStart(process_id: string): void {
    if (this.#stopped !== null) throw new ApiError('shutting_down');
    if (this.is_paused) throw new ApiError('conflict', 'The sandbox is paused.');
    this.#emptying.checkMayStart();
    this.#registry.checkRoom();
    this.#waiting.checkRoom();
    if (this.#left.isUnread(process_id)) throw unreadError(process_id);
  }

  async #stop(): Promise<void> {
    this.#retention.stop();
    this.#launcher.close();
    await this.#left.allKnown(); // descendants of ended ones end, too
    await this.#left.stop();
    const processes = await this.#registry.started();
    await this.resume();
    await endAll(this.#options, this.#trees, processes);
    await this.#copies.allFinished();
    await Promise.allSettled(processes.map((process) => process.close()));
    await Promise.allSettled([this.#freezer.close(), this.#oom.close()]);
  }

  #context(): ProcessContext {
    return {
      ...this.#options,
      random: this.#options.random ?? Math.random,
      waiting: this.#waiting,
      large: this.#large,
      boot_id: this.#boot_id,
      trees: this.#trees,
      oom: this.#oom,
      launcher: this.#launcher,
      freezer: this.#freezer,
      isPaused: () => this.is_paused,
      onIdle: () => this.#retention.sweepSoon(),
    };
  }
}

function hasCome(process: SupervisedProcess, what: WaitOptions['for']): boolean {
  if (what === 'exit') return process.is_drained;
  const { run, is_final } = process.record;
  const is_ready = run?.is_ready ?? null;
  if (is_ready) return true;
  if (is_ready === null) throw new ApiError('conflict', 'The process has no ready probe.');
  if (is_final) throw new ApiError('conflict', 'The process ended before it was ready.');
  return false;
}
