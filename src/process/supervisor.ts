import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../base/folder.ts';
import { readBootId } from '../base/linux/procfs.ts';
import type { Service } from '../base/service.ts';
import { ApiError } from '../contract/errors.ts';
import type { ResourceUsage } from '../contract/events.ts';
import type { ProcessView } from '../contract/processes.ts';
import type { ProcessRequest, PtySize } from '../contract/schema/process-request.ts';
import type { ProcessContext } from './context.ts';
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
import { newRecord } from './record.ts';
import { recoverAll } from './recovery.ts';
import { ProcessRegistry, requestFingerprint } from './registry.ts';
import { ProcessRetention } from './retention.ts';
import { endAll } from './shutdown.ts';
import type { StdinWrite } from './stdin.ts';
import type { SpawnExtras, SpawnResult, SupervisorOptions } from './supervisor-options.ts';
import { Freezer } from './tree/freezer.ts';
import { parseSignal } from './tree/signals.ts';
import { TreeFinder } from './tree/tree.ts';
import { type WaitOptions, waitFor } from './wait.ts';

/**
 * Starts, follows and ends processes. Every method that takes a `process_id` throws `not_found` for an unknown one.
 * Source: contract section 4, rows `/processes…` and the paragraphs below the options.
 */
export class Supervisor implements Service {
  readonly #options: SupervisorOptions;
  readonly #trees = new TreeFinder();
  readonly #oom = new OomWatch();
  readonly #registry = new ProcessRegistry(this.#trees);
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
    this.#freezer = new Freezer(clock, log, this.#trees, directory);
    this.#copies = new OutputCopies(clock);
    this.#pause = new ProcessPause({
      freezer: this.#freezer,
      all: () => this.#registry.all(),
      started: () => this.#registry.started(),
      isStopping: () => this.#stopped !== null,
    });
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

  /** The process once it has ended or is ready; null if the time is over first. See waitFor for `conflict`. */
  async wait(process_id: string, query: WaitOptions): Promise<ProcessView | null> {
    const process = this.#registry.get(process_id);
    return (await waitFor(this.#options.clock, process, query)) ? process.view() : null;
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

  async #recover(names: readonly string[]): Promise<void> {
    const { recovered, unread } = await recoverAll(this.#context(), this.#options.directory, names);
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
    const processes = await this.#registry.started();
    await this.resume();
    await endAll({ ...this.#options, trees: this.#trees }, processes, this.#copies);
    await Promise.allSettled([this.#freezer.close(), this.#oom.close()]);
  }

  #context(): ProcessContext {
    return {
      ...this.#options,
      random: this.#options.random ?? Math.random,
      boot_id: this.#boot_id,
      trees: this.#trees,
      oom: this.#oom,
      freezer: this.#freezer,
      isPaused: () => this.is_paused,
      onIdle: () => this.#retention.sweepSoon(),
    };
  }
}
