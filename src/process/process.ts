import { timestamp } from '../base/clock.ts';
import type { ProcStat } from '../base/linux/procfs.ts';
import { ApiError } from '../contract/errors.ts';
import type { ResourceUsage } from '../contract/events.ts';
import type { OutputStream, ProcessState, ProcessView } from '../contract/processes.ts';
import type { PtySize } from '../contract/schema/process-request.ts';
import type { ChangeSignal } from './change-signal.ts';
import type { ProcessContext } from './context.ts';
import { ProcessLifecycle } from './lifecycle.ts';
import type { LosslessFollowers } from './output/lossless-followers.ts';
import type { OutputLog } from './output/output-log.ts';
import type { OutputSource } from './output/output-reader.ts';
import { ProcessOutput } from './output/process-output.ts';
import { type ProcessRecord, removeFolder } from './record.ts';
import type { Run } from './run.ts';
import type { Stdin } from './stdin.ts';
import { trySignal } from './tree/terminate-tree.ts';
import type { TreeRoot } from './tree/tree.ts';

/**
 * One supervised process as others see it: what it is doing, and the verbs that act on it. Its runs, restarts and end
 * are in ProcessLifecycle.
 */
export class SupervisedProcess implements OutputSource {
  readonly record: ProcessRecord;
  readonly #context: ProcessContext;
  readonly #folder: string;
  readonly #output: ProcessOutput;
  readonly #lifecycle: ProcessLifecycle;

  private constructor(context: ProcessContext, folder: string, record: ProcessRecord, output: ProcessOutput) {
    this.record = record;
    this.#context = context;
    this.#folder = folder;
    this.#output = output;
    this.#lifecycle = new ProcessLifecycle(context, folder, record, output);
  }

  /**
   * Starts a new process; `folder` becomes its own. Throws the catalogue's error, or the system's, if the program
   * cannot be started.
   */
  static async start(
    context: ProcessContext,
    folder: string,
    record: ProcessRecord,
  ): Promise<SupervisedProcess> {
    const output = ProcessOutput.create(context.clock, folder, record.is_lossless);
    const started = new SupervisedProcess(context, folder, record, output);
    try {
      await started.#lifecycle.launch(true);
      return started;
    } catch (error) {
      await started.#lifecycle.saver.close();
      throw error;
    }
  }

  /** Takes over what an earlier daemon left in `folder`. Throws the system's error if it cannot be read. */
  static async recover(
    context: ProcessContext,
    folder: string,
    record: ProcessRecord,
  ): Promise<SupervisedProcess> {
    const output = await ProcessOutput.load(context.clock, folder, record.is_lossless && !record.is_final);
    const recovered = new SupervisedProcess(context, folder, record, output);
    await recovered.#lifecycle.recover();
    return recovered;
  }

  /** Notified when the state or the output changes. */
  get changes(): ChangeSignal {
    return this.#output.changes;
  }

  /** The kept output of each stream. */
  get logs(): Readonly<Record<OutputStream, OutputLog>> {
    return this.#output.logs;
  }

  /** The followers that must not miss a byte. */
  get lossless(): LosslessFollowers {
    return this.#output.lossless;
  }

  /** Whether the last run has ended and no further run follows. Its output may still be on its way to the disk. */
  get is_final(): boolean {
    return this.record.is_final;
  }

  /** Whether the process is final and its own output can be read to the end. */
  get is_drained(): boolean {
    return this.#lifecycle.is_drained;
  }

  /** Whether it has ended, its events are stored, and no descendant can write output any more. */
  get is_idle(): boolean {
    return this.is_drained && !this.#output.is_open && this.record.unsent.length === 0;
  }

  /** Whether the present run is ready; null if the request has no ready probe. */
  get is_ready(): boolean | null {
    return this.record.run?.is_ready ?? null;
  }

  /** Size of the kept output on disk. */
  get size_bytes(): number {
    return this.#output.size_bytes;
  }

  /** The state as the API gives it. */
  get state(): ProcessState {
    const { end, is_final } = this.record;
    if (!end) return this.#context.isPaused() ? 'paused' : 'running';
    return is_final ? end.kind : 'restarting';
  }

  /** The root of the last run's tree. */
  get root(): TreeRoot {
    return this.#lifecycle.tree.root;
  }

  /** The process as the API gives it. `members` spares a read of the kernel's process table. */
  async view(members?: readonly ProcStat[]): Promise<ProcessView> {
    const { process_id, request, command, cwd, created_at_ms, run, end, restart_count } = this.record;
    const started_at_ms = run?.started_at_ms ?? created_at_ms;
    return {
      process_id,
      name: request.name ?? null,
      pid: run?.pid ?? 0,
      state: this.state,
      command,
      cwd,
      user: run?.user ?? request.user ?? null,
      exit_code: end?.exit_code ?? null,
      signal: end?.signal ?? null,
      timed_out: end?.timed_out ?? false,
      started_at: timestamp(started_at_ms),
      exited_at: end ? timestamp(end.exited_at_ms) : null,
      duration_ms: end ? (end.duration_ms ?? Math.max(0, end.exited_at_ms - started_at_ms)) : null,
      restart_count,
      ready: this.is_ready,
      resource_usage: await this.usage(members),
    };
  }

  /** What its tree uses now, or what was measured last; after the end of the whole tree, the CPU time alone. */
  usage(members?: readonly ProcStat[]): Promise<ResourceUsage> {
    return this.#lifecycle.tree.usage(this.is_drained && !this.#output.is_open, members);
  }

  /** The writing end of its stdin. Throws `conflict` if it has none or has ended. */
  stdin(): Stdin {
    const { stdin } = this.#liveRun().launched;
    if (!stdin) throw new ApiError('conflict', 'The process has no stdin to write to.');
    return stdin;
  }

  /**
   * Sends a signal to the process group or to the leader alone. With `final` no restart follows an end. Throws
   * `conflict` if the process has ended.
   */
  signal(signal: NodeJS.Signals, scope: 'group' | 'leader', final = false): void {
    if (final) this.#lifecycle.restarts.forbid();
    if (final && this.state === 'restarting') {
      this.#lifecycle.cancelRestart();
      return;
    }
    const run = this.#liveRun();
    run.requested_signals.add(signal);
    const { pid } = run.info;
    if (!trySignal(scope === 'group' ? -pid : pid, signal)) throw endedConflict();
  }

  /** Changes the size of its terminal. Throws `conflict` if it has ended or has no terminal. */
  resize(size: PtySize): void {
    const { launched } = this.#liveRun();
    if (!launched.resize) throw new ApiError('conflict', 'The process has no terminal.');
    launched.resize(size);
  }

  /**
   * Ends the tree, SIGTERM first and SIGKILL after `grace_ms`; no restart follows. Resolves when the process is
   * drained. Throws `timeout` if the kernel does not let the tree end.
   */
  async terminate(grace_ms: number): Promise<void> {
    this.#lifecycle.restarts.forbid();
    await this.#lifecycle.started();
    this.#lifecycle.cancelRestart();
    this.#output.is_ending = true;
    const is_empty = await this.#lifecycle.tree.terminate(grace_ms);
    if (!is_empty)
      throw new ApiError('timeout', 'The process did not end after SIGKILL: it is stuck in the kernel.');
    await this.drained();
  }

  /** Resolves when the process has ended for good and its output can be read to the end. */
  async drained(): Promise<void> {
    while (!this.is_drained) await this.changes.after(this.changes.version);
  }

  /** Resolves when every event so far is stored. */
  async flushEvents(): Promise<void> {
    await this.#lifecycle.events.flush();
  }

  /** Resolves when no restart is under way. */
  async started(): Promise<void> {
    await this.#lifecycle.started();
  }

  /** Pauses its time-out and its restart. The caller stops the tree. */
  pauseTimers(): void {
    this.#lifecycle.timers.pause();
  }

  /** Lets its time-out and its restart run again. */
  resumeTimers(): void {
    this.#lifecycle.timers.resume();
  }

  /** Closes its files and pipes. A process that still runs is left running. */
  close(): Promise<void> {
    return this.#lifecycle.close();
  }

  /** Saves its record. Never rejects: errors are logged. */
  async save(): Promise<void> {
    await this.#lifecycle.saver.save();
  }

  /** Removes its folder from the disk. */
  async remove(): Promise<void> {
    await this.#lifecycle.saver.close(); // no save may be under way when its folder is removed
    await removeFolder(this.#folder);
  }

  #liveRun(): Run {
    const { run } = this.#lifecycle.tree;
    if (!run || run.has_released_pid || this.record.end) throw endedConflict();
    return run;
  }
}

function endedConflict(): ApiError {
  return new ApiError('conflict', 'The process has ended.');
}
