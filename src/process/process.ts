import { setImmediate as turn } from 'node:timers/promises';
import type { ProcStat } from '../base/linux/procfs.ts';
import { RESTART_BACKOFF_CAP_MS } from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { ResourceUsage } from '../contract/field.ts';
import type { ProcessRequest, ProcessView, PtySize } from '../contract/processes.ts';
import type { ProcessState } from '../contract/words.ts';
import type { ProcessContext } from './context.ts';
import { EventQueue } from './event-queue.ts';
import type { OutputSource } from './output/output-reader.ts';
import { ProcessOutput } from './output/process-output.ts';
import { TimerSet } from './pausable-timer.ts';
import { type ReadyWatch, watchReadiness } from './ready.ts';
import { type ProcessRecord, unsentEvent, viewOf } from './record.ts';
import { type KeptRecord, type RecordFileStart, RecordSaver, removeFolder } from './record-file.ts';
import { reattach } from './recovery.ts';
import { readRequest, wholeEmit } from './request.ts';
import { RestartBackoff, RestartSchedule } from './restart.ts';
import { beginRun, endedConflict, Run, type RunEnd } from './run.ts';
import { commandOf, startError } from './start/command.ts';
import type { Launched, Outlet } from './start/launch.ts';
import { startRun } from './start/start-run.ts';
import type { Stdin } from './stdin.ts';
import { ProcessTree } from './tree/process-tree.ts';
import { trySignal } from './tree/terminate-tree.ts';
import type { TreeRoot } from './tree/tree.ts';

/**
 * One supervised process: a sequence of runs, each with one started event and one end event.
 *
 * | State      | In the record                   | Entered                        | Left                                   |
 * |------------|---------------------------------|--------------------------------|----------------------------------------|
 * | starting   | no `run`, or the `end` before   | `start`, the restart timer     | program runs: running; refused: discarded (first run), restarting or draining |
 * | running    | `run`, no `end`                 | the kernel started the program | the program ends: restarting, draining |
 * | restarting | `end`, not `is_final`           | a run ended, a restart follows | timer: starting; restart canceled: draining |
 * | draining   | `end`, `is_final`               | no further run follows         | output written: drained                |
 * | drained    | the same; `is_drained` in memory | output can be read to the end | never                                  |
 *
 * Each state is in the record, so that the next daemon resumes there (`recover`). A run ends with the program itself;
 * descendants may outlive it and keep its output open.
 */
export class SupervisedProcess implements OutputSource {
  readonly record: ProcessRecord;
  /** Kept output of all runs. Its `changes` are notified of the process's state, too. */
  readonly output: ProcessOutput;
  /** Its time-out and its restart, paused and resumed by whoever stops the tree. */
  readonly timers: TimerSet;
  readonly #context: ProcessContext;
  readonly #folder: string;
  readonly #outlet: Outlet;
  readonly #saver: RecordSaver;
  readonly #events: EventQueue;
  readonly #tree: ProcessTree;
  readonly #restarts: RestartSchedule;
  #ready_watch: ReadyWatch | null = null;
  #starting: Promise<void> = Promise.resolve();
  #terminating: Promise<unknown> = Promise.resolve();
  #is_drained = false;

  /** `stored`: the request of a new process, or how much of its record is on disk. */
  private constructor(
    context: ProcessContext,
    folder: string,
    record: ProcessRecord,
    output: ProcessOutput,
    stored: RecordFileStart,
  ) {
    const { clock, log, waiting, random } = context;
    this.#context = context;
    this.#folder = folder;
    this.record = record;
    this.output = output;
    const onOutput: Outlet['onOutput'] = (stream, data) => this.#ready_watch?.onOutput(stream, data);
    this.#outlet = { clock, logs: output.logs, onOutput };
    this.#tree = new ProcessTree(context, record);
    const onError = (error: unknown, message: string) => this.#warn(error, message);
    this.#saver = new RecordSaver(clock, folder, record, { ...stored, isOver: () => this.is_idle }, onError);
    const parts = { clock, log, emit: wholeEmit(context, folder, record), waiting };
    this.#events = new EventQueue({ ...parts, onStored: () => this.#onStored() }, record.unsent);
    this.timers = new TimerSet(clock, context.isPaused);
    const backoff = new RestartBackoff(record.request.restart ?? { policy: 'never' }, random);
    this.#restarts = new RestartSchedule(backoff, this.timers, () => !this.#events.is_full);
  }

  /**
   * Starts a new process; `folder` becomes its own. Throws the catalogue's error if that fails, and leaves nothing
   * behind: CannotStart for a command at fault, `too_many_requests` for a limit of the system, `outbox_unavailable` for
   * other errors of the disk.
   */
  static async start(
    context: ProcessContext,
    folder: string,
    record: ProcessRecord,
    request: ProcessRequest,
  ): Promise<SupervisedProcess> {
    const output = ProcessOutput.create(context, folder, record);
    const started = new SupervisedProcess(context, folder, record, output, { request });
    try {
      await started.#launch(request, true);
      return started;
    } catch (error) {
      await started.remove().catch(() => {});
      throw startError(error, record.command[0]);
    }
  }

  /** Takes over what an earlier daemon left in `folder`, and resumes there. Throws the system's error if it cannot be read. */
  static async recover(
    context: ProcessContext,
    folder: string,
    { record, ...stored }: KeptRecord,
  ): Promise<SupervisedProcess> {
    const output = await ProcessOutput.load(context, folder, record);
    const recovered = new SupervisedProcess(context, folder, record, output, stored);
    await recovered.#resume();
    return recovered;
  }

  /** Whether the process is final and its own output can be read to the end. */
  get is_drained(): boolean {
    return this.#is_drained;
  }

  /** Whether it has ended, its events are stored, and no descendant can write output any more. */
  get is_idle(): boolean {
    return this.#is_drained && !this.output.is_open && this.record.unsent.length === 0;
  }

  /** Whether it is idle and its record on disk says so: nothing of it changes any more. */
  get is_over(): boolean {
    return this.is_idle && this.#saver.file.is_over;
  }

  /** Bytes that it takes on disk: its record and its output. */
  get size_bytes(): number {
    return this.#saver.file.size_bytes + this.output.size_bytes;
  }

  /** The state as the API gives it. */
  get state(): ProcessState {
    const { end, is_final } = this.record;
    if (!end) return this.#context.isPaused() ? 'paused' : 'running';
    return is_final ? end.kind : 'restarting';
  }

  /** The root of the last run's tree. */
  get root(): TreeRoot {
    return this.#tree.root;
  }

  /** The process as the API gives it. `members` spares a read of the kernel's process table. */
  async view(members?: readonly ProcStat[]): Promise<ProcessView> {
    const view = viewOf(this.record, this.state); // in one step, so that its fields agree
    return { ...view, resource_usage: await this.usage(members) };
  }

  /** Usage of its tree now, or as measured last; after the end of the whole tree, the CPU time alone. */
  usage(members?: readonly ProcStat[]): Promise<ResourceUsage> {
    return this.#tree.usage(this.#is_drained && !this.output.is_open, members);
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
  signal(signal: string, scope: 'group' | 'leader', final = false): void {
    if (final) this.#restarts.forbid();
    if (final && this.state === 'restarting') {
      this.#cancelRestart();
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
    this.#restarts.forbid();
    this.#context.launcher.giveUp(this.record.mark, endedConflict());
    await this.started();
    this.#cancelRestart();
    this.output.is_ending = true;
    const is_empty = await this.#tree.terminate(grace_ms);
    if (!is_empty)
      throw new ApiError('timeout', 'The process did not end after SIGKILL: it is stuck in the kernel.');
    await this.drained();
  }

  /** Resolves when the process has ended for good and its output can be read to the end. */
  async drained(): Promise<void> {
    const { changes } = this.output;
    while (!this.#is_drained) await changes.after(changes.version);
  }

  /** Resolves when every event up to now is stored. */
  flushEvents(): Promise<void> {
    return this.#events.flush();
  }

  /** Resolves when no restart is under way. */
  async started(): Promise<void> {
    await this.#starting.catch(() => {});
  }

  /** Saves its record. Never rejects: errors are logged. */
  save(): Promise<void> {
    return this.#saver.save();
  }

  /** Closes its files and pipes, with a last save. A process that still runs is left running. */
  async close(): Promise<void> {
    this.#saver.cancelSync();
    this.#tree.run?.launched.close();
    this.#ready_watch?.close();
    await this.output.close();
    await this.#saver.save();
    await this.#saver.close();
  }

  /** Removes its folder from the disk. */
  async remove(): Promise<void> {
    await this.#saver.close(); // no save may be under way when its folder is removed
    await removeFolder(this.#folder);
  }

  /**
   * Starts a run; the first makes the folder. Throws the catalogue's error or the system's if the program cannot be
   * started.
   */
  async #launch(request: ProcessRequest, is_first: boolean): Promise<void> {
    this.#ready_watch = this.#newReadyWatch();
    try {
      const launched = await startRun(this.#context, {
        record: { ...this.record, request, command: commandOf(request) },
        file: this.#saver.file,
        folder: this.#folder,
        is_first,
        outlet: this.#outlet,
        onSignalKey: this.#tree.onSignal,
      });
      this.#onStarted(launched);
    } catch (error) {
      this.#ready_watch?.close();
      throw error;
    }
    await turn(); // its event goes to the disk now, the rest is done meanwhile
    if (this.#tree.run?.has_released_pid !== false) return;
    this.#context.oom.rankBefore(this.#tree.run.info.pid);
    void this.#saver.saveInPlace();
  }

  /** Resumes where an earlier daemon stopped. Throws the system's error if the pipes cannot be opened. */
  async #resume(): Promise<void> {
    const { record } = this;
    const { run } = record;
    this.#events.send();
    if (!run) throw new Error('a record without a run cannot be recovered');
    const launched = await reattach(this.#context, record.mark, run, this.#folder, this.#outlet);
    if (record.end) {
      void this.#followOutput(launched);
      if (record.is_final) return this.#drain();
      return this.#scheduleRestart(RESTART_BACKOFF_CAP_MS);
    }
    if (run.is_ready === false) this.#ready_watch = this.#newReadyWatch();
    const age_ms = Math.max(0, this.#context.clock.wallMs() - run.started_at_ms);
    this.#follow(new Run(this.#context, record, run, launched, this.output.logs, age_ms));
  }

  #newReadyWatch(): ReadyWatch | null {
    return watchReadiness(this.#context.clock, this.record, () => {
      void this.#saver.save();
      this.output.changes.notify();
    });
  }

  #onStarted(launched: Launched): void {
    const { pid, start_ticks } = launched;
    const is_ready = this.#ready_watch?.is_ready ?? null;
    const { run, unsent } = beginRun(this.#context, this.record, { pid, start_ticks, is_ready });
    this.output.is_ending = false;
    this.#events.add(unsent);
    this.#events.send();
    this.#follow(new Run(this.#context, this.record, run, launched, this.output.logs, 0));
  }

  #follow(run: Run): void {
    this.#tree.follow(run);
    const { timeout_ms } = this.record.request;
    if (timeout_ms !== undefined) {
      run.limit(timeout_ms, this.timers, () => {
        // No process handles SIGTERM while paused, so the grace of a time-out is paused, too.
        this.output.is_ending = true;
        this.#terminating = this.#tree.terminate(this.#context.grace_ms, this.timers);
      });
    }
    run.ended
      .then((end) => this.#onEnd(run, end))
      .catch((error) => this.#warn(error, 'the end of a process could not be handled'));
    void this.#followOutput(run.launched);
    this.#context.freezer.add(() => (run.has_released_pid ? null : run.root));
    this.#saver.syncLater();
    this.output.changes.notify();
  }

  async #followOutput(launched: Launched): Promise<void> {
    await this.output.follow(launched.output_closed);
    if (this.output.is_open || !this.record.is_final) return;
    await this.output.end();
    this.#context.onIdle();
  }

  async #onEnd(run: Run, { end, event, ...measured }: RunEnd): Promise<void> {
    const { record } = this;
    this.#ready_watch?.close();
    run.launched.stdin?.close();
    const { kind, exit_code, signal } = end;
    const delay_ms = this.#restarts.delayAfter(exit_code, measured.duration_ms, record.restart_count);
    record.end = { kind, exit_code, signal, ...measured };
    record.is_final = delay_ms === null;
    this.#events.add(unsentEvent(record, 'ended', event));
    // Saved before it is sent: otherwise the next daemon could report the same end again, as unknown.
    void this.#saver.save().then(() => this.#events.send());
    this.output.changes.notify();
    if (delay_ms === null) return this.#drain();
    await this.#terminating; // a time-out ends the whole tree before the next run begins
    if (!this.#restarts.is_forbidden) this.#scheduleRestart(delay_ms);
  }

  #scheduleRestart(delay_ms: number): void {
    this.#restarts.schedule(delay_ms, () => {
      this.#starting = this.#restart();
    });
  }

  async #restart(): Promise<void> {
    const { record } = this;
    record.restart_count += 1;
    try {
      await this.#launch(await readRequest(this.#folder), false);
    } catch (error) {
      this.#warn(error, 'a process could not be restarted');
      const delay_ms = this.#restarts.delayAfter(null, 0, record.restart_count);
      if (delay_ms !== null) return this.#scheduleRestart(delay_ms);
      record.is_final = true;
      await this.#drain();
    }
  }

  /** Cancels the restart that is scheduled, if any: the process has then ended for good. */
  #cancelRestart(): void {
    if (!this.record.end || this.record.is_final) return;
    this.#restarts.cancel();
    this.record.is_final = true;
    void this.#drain();
  }

  /** Never rejects: errors of the disk are logged, and the process has ended all the same. */
  async #drain(): Promise<void> {
    void this.#saver.save();
    await this.output.drain();
    this.#is_drained = true;
    this.output.changes.notify();
    if (!this.output.is_open) await this.output.end();
    this.#context.onIdle();
  }

  #onStored(): void {
    this.#saver.saveSoon();
    if (this.#is_drained) this.#context.onIdle();
  }

  #liveRun(): Run {
    const { run } = this.#tree;
    if (!run || run.has_released_pid || this.record.end) throw endedConflict();
    return run;
  }

  #warn(error: unknown, message: string): void {
    this.#context.log.warn({ err: error, process_id: this.record.process_id }, message);
  }
}
