import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Writable } from 'node:stream';
import { type Clock, sleep, type Timer } from '../base/clock.ts';
import { kernelRandom } from '../base/entropy.ts';
import { makeFolder } from '../base/folder.ts';
import type { Log } from '../base/log.ts';
import type { Service } from '../base/service.ts';
import { PROCESSES_LIVE_MAX } from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { ResourceUsage } from '../contract/events.ts';
import type { ProcessRequest, ProcessView, PtySize } from '../contract/processes.ts';
import { OUTPUT_STREAMS } from '../contract/processes.ts';
import type { Emit } from './event-queue.ts';
import { OomWatch } from './exit/oom.ts';
import { copyOutput } from './output/copy.ts';
import { type OutputItems, type OutputQuery, readOutput } from './output/output-reader.ts';
import { type OutputTail, outputTail } from './output/output-tail.ts';
import { SupervisedProcess } from './process.ts';
import { type ProcessRecord, removeFolder } from './record.ts';
import { recoverAll } from './recovery.ts';
import { expiredProcesses } from './retention.ts';
import { spawnRefusal } from './start/command.ts';
import type { ProcessContext } from './start/context.ts';
import { FolderPool } from './start/folder-pool.ts';
import { commandOf, requestFingerprint } from './start/request.ts';
import type { StdinWrite } from './stdin.ts';
import { Freezer } from './tree/freezer.ts';
import { type ProcStat, readBootId } from './tree/proc.ts';
import { parseSignal } from './tree/signals.ts';
import { terminateTree } from './tree/terminate-tree.ts';
import { TreeFinder } from './tree/tree.ts';
import { NO_USAGE, sumUsage } from './tree/usage.ts';
import { type WaitQuery, waitFor } from './wait.ts';

/** A folder beside those of the processes; no process_id is spelled so. */
const FOLDERS_AHEAD = '+ready';
const RETENTION_INTERVAL_MS = 60_000;
const PRUNE_DELAY_MS = 500;
/** How long the copy of a process's output may go on after its end, where the target takes it slowly. */
const COPY_REST_MS = 2_000;

export interface SupervisorOptions {
  clock: Clock;
  log: Log;
  /** `<state-dir>/processes`; made with mode 0700 where missing. */
  directory: string;
  /** Stores an event durably. While it rejects, the event is kept and tried again. */
  emit: Emit;
  /** The plain environment of children, free of the daemon's secrets. Asked at each start. */
  environment: () => Record<string, string>;
  /** The account of processes that name none; null is the daemon's own. */
  default_user: string | null;
  /** From SIGTERM to SIGKILL, where a verb names no other. */
  grace_ms: number;
  /** Numbers from 0 to 1, for jitter. */
  random?: () => number;
}

/** What only the daemon itself asks for with a start. */
export interface SpawnExtras {
  /** Both streams of the process are also copied there. */
  copy_to?: { stdout: Writable };
  /** An ended process with the same id makes room instead of being answered. */
  replace_ended?: boolean;
}

/** `created` is false where a process with this id and request was there before. */
export interface SpawnResult {
  created: boolean;
  process: ProcessView;
}

interface Entry {
  fingerprint: string;
  process: Promise<SupervisedProcess>;
}

/**
 * Starts, follows and ends processes. Every verb that takes a `process_id` throws `not_found` for one that is not
 * known. Source: contract section 4, rows `/processes…` and the paragraphs below the options.
 */
export class Supervisor implements Service {
  readonly #options: SupervisorOptions;
  readonly #directory: string;
  readonly #trees = new TreeFinder();
  readonly #oom = new OomWatch();
  readonly #folders: FolderPool;
  readonly #freezer: Freezer;
  readonly #entries = new Map<string, Entry>();
  /** Those that are known for good, in the order of their starts. */
  readonly #processes = new Map<string, SupervisedProcess>();
  readonly #copies = new Map<string, Promise<void>>();
  /** Ids of processes that could not be taken over yet. */
  #unread: readonly string[] = [];
  #boot_id = '';
  #is_paused = false;
  #pausing: Promise<void> = Promise.resolve();
  #retention: Timer | null = null;
  #pruning: Timer | null = null;
  #stopped: Promise<void> | null = null;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#directory = options.directory;
    this.#folders = new FolderPool(options.clock, join(options.directory, FOLDERS_AHEAD));
    this.#freezer = new Freezer(options.clock, options.log, this.#trees, options.directory);
  }

  /** Takes over what an earlier daemon left: running processes, ended ones and their output, events not stored. */
  async start(): Promise<void> {
    this.#boot_id = await readBootId();
    await makeFolder(this.#directory);
    await this.#trees.open();
    await Promise.all([this.#folders.open(), this.#oom.open(), this.#freezer.open()]);
    const names = await readdir(this.#directory);
    await this.#recover(names.filter((name) => name !== FOLDERS_AHEAD));
    this.#scheduleRetention();
  }

  async #recover(names: readonly string[]): Promise<void> {
    const { recovered, unread } = await recoverAll(this.#context(), this.#directory, names);
    this.#unread = unread;
    for (const process of recovered.sort((a, b) => a.record.created_at_ms - b.record.created_at_ms)) {
      const { process_id, request } = process.record;
      this.#entries.set(process_id, {
        fingerprint: requestFingerprint(request),
        process: Promise.resolve(process),
      });
      this.#processes.set(process_id, process);
    }
    await this.#releaseStopped(recovered);
  }

  /** Ends every tree, SIGTERM first and SIGKILL after the grace; returns when their ends are stored. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /**
   * Starts a process. The same id with the same request gives the process that is there, with another `conflict`.
   * What cannot be started is an error that names the field (CannotStart): no event, and the id stays free.
   */
  async spawn(request: ProcessRequest, extras: SpawnExtras = {}): Promise<SpawnResult> {
    const process_id = request.process_id ?? this.#newId();
    const fingerprint = requestFingerprint(request);
    if (extras.replace_ended) await this.#replaceEnded(process_id);
    const known = this.#entries.get(process_id);
    if (known) {
      if (known.fingerprint !== fingerprint) throw inUse(process_id);
      const process = await known.process;
      this.#copyOutput(process, extras);
      return { created: false, process: await process.view() };
    }
    this.#checkMayStart();
    if (this.#unread.includes(process_id)) throw cannotBeRead(process_id);
    const starting = this.#start(process_id, request);
    this.#entries.set(process_id, { fingerprint, process: starting });
    starting.catch(() => this.#entries.delete(process_id));
    const process = await starting;
    this.#processes.set(process_id, process);
    this.#copyOutput(process, extras);
    return { created: true, process: await process.view([]) };
  }

  async list(): Promise<ProcessView[]> {
    const processes = [...this.#processes.values()];
    const members = await this.#members(processes);
    return Promise.all(processes.map((process, index) => process.view(members[index])));
  }

  async get(process_id: string): Promise<ProcessView> {
    return this.#find(process_id).view();
  }

  /** Reads kept output and follows it; see readOutput for the errors of a wrong offset. */
  async output(process_id: string, query: OutputQuery): Promise<OutputItems> {
    return readOutput(this.#find(process_id), query);
  }

  /** The last `max_bytes` of each stream. */
  async outputTail(process_id: string, max_bytes: number): Promise<OutputTail> {
    return outputTail(this.#find(process_id).logs, max_bytes);
  }

  /** The process when it has ended or is ready; null when the time is over first. `conflict`: see waitFor. */
  async wait(process_id: string, query: WaitQuery): Promise<ProcessView | null> {
    const process = this.#find(process_id);
    return (await waitFor(this.#options.clock, process, query)) ? process.view() : null;
  }

  /** Resolves when all is taken by the process; waits while its pipe is full. Errors: see Stdin. */
  async writeStdin(process_id: string, write: StdinWrite): Promise<void> {
    await this.#find(process_id).stdin().write(write);
  }

  /** Sends a signal, by name. `conflict` where the process has ended, `invalid_request` for an unknown signal. */
  signal(process_id: string, signal: string, scope: 'group' | 'leader' = 'group'): void {
    this.#find(process_id).signal(parseSignal(signal), scope);
  }

  /**
   * Hands a signal that the daemon got on to the main command's own process. After SIGTERM and SIGINT no restart
   * follows. `conflict` where it has ended.
   */
  forward(process_id: string, signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void {
    this.#find(process_id).signal(signal, 'leader', signal !== 'SIGHUP');
  }

  /** Changes the size of a terminal. `conflict` where the process has ended or has no terminal. */
  resize(process_id: string, size: PtySize): void {
    this.#find(process_id).resize(size);
  }

  /** Ends a process and everything it started, SIGTERM first; gives the ended process, also when it had ended. */
  async remove(process_id: string, grace_ms = this.#options.grace_ms): Promise<ProcessView> {
    const process = this.#find(process_id);
    await process.terminate(grace_ms);
    return process.view();
  }

  /** Resolves with the ended process when no restart follows, its output is kept and its copy is written. */
  async finished(process_id: string): Promise<ProcessView> {
    const process = this.#find(process_id);
    await process.drained();
    await this.#copies.get(process_id);
    return process.view();
  }

  /** Stops every tree, sessions that descendants made included. Idempotent. */
  pause(): Promise<void> {
    return this.#inTurn(() => this.#pause());
  }

  /** Lets every tree go on. Idempotent. */
  resume(): Promise<void> {
    return this.#inTurn(() => this.#resume());
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const done = this.#pausing.then(step);
    this.#pausing = done.catch(() => {});
    return done;
  }

  get is_paused(): boolean {
    return this.#is_paused;
  }

  /** What all supervised trees use together. */
  async usage(): Promise<ResourceUsage> {
    const processes = [...this.#processes.values()].filter((process) => !isIdle(process));
    const members = await this.#members(processes);
    const usages = await Promise.all(processes.map((process, index) => process.usage(members[index])));
    return processes.length > 0 ? sumUsage(usages) : NO_USAGE;
  }

  /** The members of each tree; none at all where they cannot be known at present. */
  #members(processes: readonly SupervisedProcess[]): Promise<ProcStat[][]> {
    return this.#trees.find(processes.map(({ root }) => root)).catch(() => []);
  }

  async #start(process_id: string, request: ProcessRequest): Promise<SupervisedProcess> {
    const folder = join(this.#directory, process_id);
    const record: ProcessRecord = {
      process_id,
      request,
      command: commandOf(request),
      cwd: resolve(request.cwd ?? '.'),
      mark: kernelRandom(12).toString('hex'),
      created_at_ms: this.#options.clock.wallMs(),
      restart_count: 0,
      run: null,
      end: null,
      is_final: false,
      is_stopped: false,
      unsent: [],
    };
    try {
      return await SupervisedProcess.start(this.#context(), folder, record);
    } catch (error) {
      await removeFolder(folder).catch(() => {});
      throw startError(error, record.command[0]);
    }
  }

  #checkMayStart(): void {
    if (this.#stopped !== null) throw new ApiError('shutting_down');
    if (this.#is_paused) throw new ApiError('conflict', 'The sandbox is paused.');
    const live = [...this.#processes.values()].filter(({ is_final }) => !is_final).length;
    if (live >= PROCESSES_LIVE_MAX) {
      throw new ApiError('too_many_requests', `At most ${PROCESSES_LIVE_MAX} processes run at once.`);
    }
  }

  #find(process_id: string): SupervisedProcess {
    const process = this.#processes.get(process_id);
    if (!process) throw new ApiError('not_found', `There is no process ${process_id}.`);
    return process;
  }

  #newId(): string {
    for (;;) {
      const process_id = `proc_${kernelRandom(10).toString('hex')}`;
      if (!this.#entries.has(process_id)) return process_id;
    }
  }

  #copyOutput(process: SupervisedProcess, { copy_to }: SpawnExtras): void {
    const { process_id } = process.record;
    if (!copy_to || this.#copies.has(process_id)) return;
    const { clock } = this.#options;
    const rest = new AbortController();
    void process.drained().then(() => sleep(clock, COPY_REST_MS, rest.signal).then(() => rest.abort()));
    const copies = OUTPUT_STREAMS.map((stream) => copyOutput(process, stream, copy_to.stdout, rest.signal));
    const copied = Promise.allSettled(copies).then(() => rest.abort());
    this.#copies.set(process_id, copied);
  }

  async #pause(): Promise<void> {
    if (this.#is_paused || this.#stopped !== null) return;
    this.#is_paused = true;
    const processes = await this.#startedProcesses();
    for (const process of processes) process.pauseTimers();
    try {
      await this.#freezer.freeze(processes.map(({ root }) => root));
    } catch (error) {
      await this.#resume(); // who was stopped already must not wait for a resume that nobody asks for
      throw error;
    }
    await this.#noteStopped(processes, true);
  }

  async #resume(): Promise<void> {
    if (!this.#is_paused) return;
    await this.#freezer.thaw();
    this.#is_paused = false;
    const processes = [...this.#processes.values()];
    for (const process of processes) process.resumeTimers();
    await this.#noteStopped(processes, false);
  }

  /** So that a daemon that is killed meanwhile leaves nobody stopped for ever. */
  async #noteStopped(processes: SupervisedProcess[], is_stopped: boolean): Promise<void> {
    const live = processes.filter((process) => !isIdle(process));
    for (const { record, changes } of live) {
      record.is_stopped = is_stopped;
      changes.notify();
    }
    await Promise.allSettled(live.map((process) => process.save()));
  }

  async #releaseStopped(recovered: SupervisedProcess[]): Promise<void> {
    const stopped = recovered.filter(({ record }) => record.is_stopped);
    if (stopped.length === 0) return;
    await this.#freezer.release(stopped.map(({ root }) => root));
    await this.#noteStopped(stopped, false);
  }

  /** Every process, once no start is under way. */
  async #startedProcesses(): Promise<SupervisedProcess[]> {
    await Promise.allSettled([...this.#entries.values()].map(({ process }) => process));
    const processes = [...this.#processes.values()];
    await Promise.all(processes.map((process) => process.started()));
    return processes;
  }

  async #stop(): Promise<void> {
    this.#retention?.cancel();
    this.#pruning?.cancel();
    this.#folders.close();
    const processes = await this.#startedProcesses();
    await this.resume();
    const members = await this.#members(processes);
    const { grace_ms, clock, log } = this.#options;
    const ends = processes.map(async (process, index) => {
      if (process.is_final && members[index]?.length === 0) return;
      await process.terminate(grace_ms);
    });
    for (const end of await Promise.allSettled(ends)) {
      if (end.status === 'rejected') log.warn({ err: end.reason }, 'a process did not end');
    }
    await this.#endStrays(grace_ms);
    // What the disk does not take by then is in the records, and the next daemon emits it.
    const over = new AbortController();
    const flushed = Promise.all(processes.map((process) => process.flushEvents()));
    await Promise.race([flushed, sleep(clock, grace_ms, over.signal)]);
    over.abort();
    await Promise.all([...this.#copies.values()]);
    await Promise.allSettled(processes.map((process) => process.close()));
    await Promise.allSettled([this.#freezer.close(), this.#oom.close()]);
  }

  /** Ends who belongs to the sandbox and to no tree: only known where the whole process table is the sandbox's. */
  async #endStrays(grace_ms: number): Promise<void> {
    const { clock, log } = this.#options;
    const target = {
      members: () => this.#trees.findAll([]),
      group: () => null,
      onSignal: () => {},
      leader_ended: Promise.resolve(),
      after: (delay_ms: number, run: () => void) => clock.after(delay_ms, run),
      isPaused: () => false,
    };
    const is_empty = await terminateTree(clock, target, grace_ms).catch(() => false);
    if (!is_empty) log.warn('not every process of the sandbox has ended');
  }

  #scheduleRetention(): void {
    this.#retention = this.#options.clock.after(RETENTION_INTERVAL_MS, () => {
      this.#prune();
      this.#scheduleRetention();
      if (this.#unread.length > 0 && !this.#is_paused) void this.#recover(this.#unread);
    });
  }

  /** Not for each of many that end together: all that are kept are looked at. */
  #pruneSoon(): void {
    this.#pruning ??= this.#options.clock.after(PRUNE_DELAY_MS, () => {
      this.#pruning = null;
      this.#prune();
    });
  }

  #prune(): void {
    if (this.#stopped !== null) return;
    const ended = [...this.#processes.values()].filter(isIdle).map((process) => ({
      process_id: process.record.process_id,
      exited_at_ms: process.record.end?.exited_at_ms ?? 0,
      size_bytes: process.size_bytes,
    }));
    for (const process_id of expiredProcesses(ended, this.#options.clock.wallMs()))
      void this.#forget(process_id);
  }

  /** Ends what an ended process left behind, too: what follows would meet it. */
  async #replaceEnded(process_id: string): Promise<void> {
    const process = this.#processes.get(process_id);
    if (!process?.is_drained) return;
    await process.terminate(this.#options.grace_ms);
    await process.flushEvents();
    await process.close();
    await this.#forget(process_id);
  }

  async #forget(process_id: string): Promise<void> {
    const process = this.#processes.get(process_id);
    this.#processes.delete(process_id);
    this.#copies.delete(process_id);
    try {
      await process?.remove();
    } catch (error) {
      this.#options.log.warn({ err: error, process_id }, 'an ended process could not be removed');
    }
    this.#entries.delete(process_id); // now the id is free: nothing of the old one meets the new
  }

  #context(): ProcessContext {
    const { clock, log, emit, environment, default_user, grace_ms, random = Math.random } = this.#options;
    return {
      clock,
      log,
      emit,
      environment,
      default_user,
      grace_ms,
      random,
      boot_id: this.#boot_id,
      folders: this.#folders,
      trees: this.#trees,
      oom: this.#oom,
      freezer: this.#freezer,
      isPaused: () => this.#is_paused,
      onIdle: () => this.#pruneSoon(),
    };
  }
}

/** Ended, with its events stored and nobody left who writes output. */
function isIdle(process: SupervisedProcess): boolean {
  return process.is_drained && !process.is_output_open && process.record.unsent.length === 0;
}

function inUse(process_id: string): ApiError {
  return new ApiError('conflict', `process_id: ${process_id} is in use by another request`, {
    field: 'process_id',
  });
}

function cannotBeRead(process_id: string): ApiError {
  return new ApiError('outbox_unavailable', `What is kept of ${process_id} cannot be read at present.`);
}

/** What a caller is told of a start that failed. */
function startError(error: unknown, program: string): unknown {
  if (error instanceof ApiError) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EAGAIN' || code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM')
    return spawnRefusal(code, program);
  if (code !== undefined) {
    return new ApiError('outbox_unavailable', `The state directory cannot be written at present (${code}).`);
  }
  return error;
}
