import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { type Clock, runTime, sleep } from '../base/clock.ts';
import { makeFolder } from '../base/folder.ts';
import { readBootId } from '../base/linux/procfs.ts';
import type { Log } from '../base/log.ts';
import type { Service } from '../base/service.ts';
import { ApiError } from '../contract/errors.ts';
import type { ResourceUsage } from '../contract/events.ts';
import type { ProcessView } from '../contract/processes.ts';
import type { ProcessRequest, PtySize } from '../contract/schema/process-request.ts';
import type { ProcessContext } from './context.ts';
import type { Emit } from './event-queue.ts';
import { OomWatch } from './exit/oom.ts';
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
import { newRecord, removeFolder } from './record.ts';
import { recoverRecord } from './recovery.ts';
import { ProcessRegistry, requestFingerprint } from './registry.ts';
import { ProcessRetention } from './retention.ts';
import { Launcher } from './start/launcher.ts';
import type { StdinWrite } from './stdin.ts';
import { Freezer } from './tree/freezer.ts';
import { parseSignal } from './tree/signals.ts';
import { terminateTree } from './tree/terminate-tree.ts';
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
  readonly #retention: ProcessRetention;
  /** Ids of processes that could not be recovered yet. */
  #unread: readonly string[] = [];
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
    this.#retention = new ProcessRetention({
      ...options,
      registry: this.#registry,
      copies: this.#copies,
      onSweep: () => {
        if (this.#unread.length > 0 && !this.is_paused) void this.#recover(this.#unread);
      },
    });
  }

  /** Recovers what an earlier daemon left: running processes, ended ones with their output, and unsent events. */
  async start(): Promise<void> {
    const { directory } = this.#options;
    this.#boot_id = readBootId();
    await makeFolder(directory);
    await this.#trees.open();
    await Promise.all([this.#oom.open(), this.#freezer.open()]);
    await this.#recover(await readdir(directory));
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
    const fingerprint = requestFingerprint(request);
    if (extras.replace_ended) await this.#retention.removeEnded(process_id);
    await this.#retention.removed(process_id);
    const known = this.#registry.findSame(process_id, fingerprint);
    if (known !== null) {
      const process = await known;
      this.#copies.start(process_id, process, extras.copy_to?.stdout);
      return { created: false, process: await process.view() };
    }
    this.#checkMayStart(process_id);
    const { clock, directory } = this.#options;
    const record = newRecord(process_id, request, clock.wallMs(), extras.lossless ?? false);
    const starting = SupervisedProcess.start(this.#context(), join(directory, process_id), record);
    const process = await this.#registry.addStarting(process_id, fingerprint, starting);
    this.#copies.start(process_id, process, extras.copy_to?.stdout);
    return { created: true, process: await process.view([]) };
  }

  /** Every process that is kept, in the order of their starts. */
  async list(): Promise<ProcessView[]> {
    return this.#registry.views();
  }

  /** One process. */
  async get(process_id: string): Promise<ProcessView> {
    return this.#registry.get(process_id).view();
  }

  /** Reads kept output and follows it; see readOutput for the errors of a wrong offset. */
  async output(process_id: string, query: OutputOptions): Promise<OutputItems> {
    return readOutput(this.#registry.get(process_id), query);
  }

  /** The last `max_bytes` of each stream. */
  async outputTail(process_id: string, max_bytes: number): Promise<OutputTail> {
    return outputTail(this.#registry.get(process_id).output.logs, max_bytes);
  }

  /**
   * The process once it has ended or is ready; null if the time is over first, or `signal` aborts. Throws `conflict` if
   * it ends before it is ready, or has no ready probe. Source: contract section 4, GET `/processes/{id}/wait`.
   */
  async wait(process_id: string, query: WaitOptions): Promise<ProcessView | null> {
    const { timeout_ms, signal } = query;
    const process = this.#registry.get(process_id);
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
    await this.#registry.get(process_id).stdin().write(write);
  }

  /** Sends a signal, by name. Throws `conflict` if the process has ended, `invalid_request` for an unknown signal. */
  signal(process_id: string, signal: string, scope: 'group' | 'leader' = 'group'): void {
    this.#registry.get(process_id).signal(parseSignal(signal), scope);
  }

  /** Forwards a signal of the daemon's own; after SIGTERM and SIGINT no restart follows. Throws `conflict` if it has ended. */
  forward(process_id: string, signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void {
    this.#registry.get(process_id).signal(signal, 'leader', signal !== 'SIGHUP');
  }

  /** Changes the size of a terminal. Throws `conflict` if the process has ended or has no terminal. */
  resize(process_id: string, size: PtySize): void {
    this.#registry.get(process_id).resize(size);
  }

  /**
   * Ends a process and everything it started, SIGTERM first; gives the ended process. Does nothing to one that has
   * ended. Throws `timeout` if the kernel does not let it end.
   */
  async remove(process_id: string, grace_ms = this.#options.grace_ms): Promise<ProcessView> {
    const process = this.#registry.get(process_id);
    await process.terminate(grace_ms);
    return process.view();
  }

  /** Ends a process and starts its request anew under its id; its output so far is gone. Errors as of both. */
  async restart(process_id: string): Promise<ProcessView> {
    const { request } = this.#registry.get(process_id).record;
    this.#checkMayStart(process_id);
    await this.remove(process_id);
    return (await this.spawn({ ...request, process_id }, { replace_ended: true })).process;
  }

  /** Resolves with the ended process once no restart follows, its output is kept and its copy is written. */
  async finished(process_id: string): Promise<ProcessView> {
    const process = this.#registry.get(process_id);
    await process.drained();
    await this.#copies.finished(process_id);
    return process.view();
  }

  /** Stops every tree, including sessions that descendants made. Idempotent. */
  pause(): Promise<void> {
    return this.#pause.pause();
  }

  /** Resumes every tree. Idempotent. */
  resume(): Promise<void> {
    return this.#pause.resume();
  }

  /** Whether the processes are paused. */
  get is_paused(): boolean {
    return this.#pause.is_paused;
  }

  /** What all supervised trees use together. */
  async usage(): Promise<ResourceUsage> {
    return this.#registry.usage();
  }

  /**
   * Takes over every process that an earlier daemon left in these folders: running ones, those that wait for a restart,
   * and ended ones with their output. Folders without a valid record are removed. Never rejects: an error with one
   * process is logged and does not affect the others; its folder is kept and tried again later.
   */
  async #recover(names: readonly string[]): Promise<void> {
    const context = this.#context();
    const recovered: SupervisedProcess[] = [];
    const unread: string[] = [];
    for (const name of names) {
      try {
        const folder = join(this.#options.directory, name);
        const record = await recoverRecord(context, folder);
        if (record) recovered.push(await SupervisedProcess.recover(context, folder, record));
        else await removeFolder(folder);
      } catch (error) {
        context.log.error(
          { err: error, process_id: name },
          'a process cannot be recovered right now: it will be retried',
        );
        unread.push(name);
      }
    }
    this.#unread = unread;
    for (const process of recovered.sort((a, b) => a.record.created_at_ms - b.record.created_at_ms)) {
      this.#registry.addRecovered(process, requestFingerprint(process.record.request));
    }
    await this.#pause.releaseStopped(recovered);
  }

  #checkMayStart(process_id: string): void {
    if (this.#stopped !== null) throw new ApiError('shutting_down');
    if (this.is_paused) throw new ApiError('conflict', 'The sandbox is paused.');
    this.#registry.checkRoom();
    if (!this.#unread.includes(process_id)) return;
    throw new ApiError('outbox_unavailable', `The record of ${process_id} cannot be read right now.`);
  }

  async #stop(): Promise<void> {
    this.#retention.stop();
    this.#launcher.close();
    const processes = await this.#registry.started();
    await this.resume();
    await this.#terminateAll(processes);
    await this.#terminateStrays();
    await this.#flushEvents(processes);
    await this.#copies.allFinished();
    await Promise.allSettled(processes.map((process) => process.close()));
    await Promise.allSettled([this.#freezer.close(), this.#oom.close()]);
  }

  /** Ends every tree, SIGTERM first. Processes that do not end are logged; never rejects. */
  async #terminateAll(processes: readonly SupervisedProcess[]): Promise<void> {
    const { grace_ms, log } = this.#options;
    const members = await this.#trees.find(processes.map(({ root }) => root)).catch(() => []);
    const ends = processes.map(async (process, index) => {
      if (process.record.is_final && members[index]?.length === 0) return;
      await process.terminate(grace_ms);
    });
    for (const end of await Promise.allSettled(ends)) {
      if (end.status === 'rejected') log.warn({ err: end.reason }, 'a process did not end');
    }
  }

  /** Ends processes of the sandbox that belong to no tree. They are known only if the sandbox has its own table. */
  async #terminateStrays(): Promise<void> {
    const { clock, log, grace_ms } = this.#options;
    const target = {
      members: () => this.#trees.findAll([]),
      group: () => null,
      onSignal: () => {},
      leader_ended: Promise.resolve(),
      after: (delay_ms: number, run: () => void) => runTime(clock).after(delay_ms, run),
      isPaused: () => false,
    };
    const is_empty = await terminateTree(clock, target, grace_ms).catch(() => false);
    if (!is_empty) log.warn('some processes of the sandbox are still running');
  }

  /**
   * Resolves when the events of all processes are stored, or after the grace: what is not stored by then stays in the
   * records, and the next daemon emits it.
   */
  async #flushEvents(processes: readonly SupervisedProcess[]): Promise<void> {
    const { clock, grace_ms } = this.#options;
    const over = new AbortController();
    const flushed = Promise.all(processes.map((process) => process.flushEvents()));
    await Promise.race([flushed, sleep(runTime(clock), grace_ms, over.signal)]);
    over.abort();
  }

  #context(): ProcessContext {
    return {
      ...this.#options,
      random: this.#options.random ?? Math.random,
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
