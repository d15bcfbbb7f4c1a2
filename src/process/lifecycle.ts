import { setImmediate as turn } from 'node:timers/promises';
import { PROCESS_EVENTS_WAITING_MAX, RESTART_BACKOFF_CAP_MS } from '../contract/defaults.ts';
import type { ProcessEvent } from '../contract/events.ts';
import type { OutputStream } from '../contract/processes.ts';
import type { ProcessContext } from './context.ts';
import { EventQueue } from './event-queue.ts';
import { closeOutput, type DrainTarget, drainOutput } from './exit/drain.ts';
import type { ProcessOutput } from './output/process-output.ts';
import { TimerSet } from './pausable-timer.ts';
import { type ReadyWatch, watchReadiness } from './ready.ts';
import { reattach } from './reattach.ts';
import type { ProcessRecord } from './record.ts';
import { RecordSaver } from './record-saver.ts';
import { RestartBackoff, RestartSchedule } from './restart.ts';
import { processStarted, Run, type RunEnd } from './run.ts';
import type { Launched } from './start/launch.ts';
import { nameRun, startRun } from './start/start-run.ts';
import { ProcessTree } from './tree/process-tree.ts';

/**
 * The life of one supervised process: a sequence of runs, each with one started event and one end event.
 *
 * | State      | In the record                   | Entered                        | Left                                   |
 * |------------|---------------------------------|--------------------------------|----------------------------------------|
 * | starting   | no `run`, or the `end` before   | `launch`, the restart timer    | program runs: running; refused: discarded (first run), restarting or draining |
 * | running    | `run`, no `end`                 | the kernel started the program | the program ends: restarting, draining |
 * | restarting | `end`, not `is_final`           | a run ended, a restart follows | timer: starting; `cancelRestart`: draining |
 * | draining   | `end`, `is_final`               | no further run follows         | output written: drained                |
 * | drained    | the same; `is_drained` in memory | output can be read to the end | never                                  |
 *
 * Each state is in the record, so that the next daemon resumes there (`recover`). A run ends with the program itself;
 * descendants may outlive it and keep its output open.
 */
export class ProcessLifecycle {
  readonly record: ProcessRecord;
  readonly events: EventQueue;
  readonly timers: TimerSet;
  readonly saver: RecordSaver;
  readonly tree: ProcessTree;
  readonly restarts: RestartSchedule;
  readonly #context: ProcessContext;
  readonly #folder: string;
  readonly #output: ProcessOutput;
  readonly #drain_target: DrainTarget;
  #ready_watch: ReadyWatch | null = null;
  #starting: Promise<void> = Promise.resolve();
  #terminating: Promise<unknown> = Promise.resolve();
  #is_drained = false;

  /** `folder` is the process's own, and `output` what is kept in it. */
  constructor(context: ProcessContext, folder: string, record: ProcessRecord, output: ProcessOutput) {
    this.#context = context;
    this.#folder = folder;
    this.record = record;
    this.#output = output;
    const { process_id } = record;
    this.#drain_target = { log: context.log, process_id, folder, output };
    this.tree = new ProcessTree(context, record);
    const { clock, log, emit, random } = context;
    this.saver = new RecordSaver(clock, folder, record, (error, message) => this.#warn(error, message));
    this.events = new EventQueue(clock, log, emit, record.unsent, () => this.#onStored());
    this.timers = new TimerSet(clock, context.isPaused);
    const backoff = new RestartBackoff(record.request.restart ?? { policy: 'never' }, random);
    const mayStart = () => this.events.length <= PROCESS_EVENTS_WAITING_MAX;
    this.restarts = new RestartSchedule(backoff, this.timers, mayStart);
  }

  /** Whether no further run follows and the output can be read to the end. */
  get is_drained(): boolean {
    return this.#is_drained;
  }

  /**
   * Starts a run; the first makes the process's folder. Throws the catalogue's error or the system's if the program
   * cannot be started.
   */
  async launch(is_first = false): Promise<void> {
    this.#ready_watch = this.#newReadyWatch();
    try {
      const launched = await startRun(this.#context, {
        record: this.record,
        file: this.saver.file,
        folder: this.#folder,
        is_first,
        outlet: { clock: this.#context.clock, logs: this.#output.logs, onOutput: this.#onOutput },
        onSignalKey: this.tree.onSignal,
      });
      this.#onStarted(launched);
    } catch (error) {
      this.#ready_watch?.close();
      throw error;
    }
    await turn(); // its event goes to the disk now, the rest is done meanwhile
    if (this.tree.run?.has_released_pid !== false) return;
    nameRun(this.#context, this.record);
    void this.saver.saveInPlace();
  }

  /** Resumes where an earlier daemon stopped. Throws the system's error if the pipes cannot be opened. */
  async recover(): Promise<void> {
    const { record } = this;
    this.events.send();
    const { run } = record;
    if (!run) throw new Error('a record without a run cannot be recovered');
    const tagged = { run, tag: record.mark };
    const launched = await reattach(this.#context, tagged, this.#folder, this.#output.logs, this.#onOutput);
    if (record.end) {
      void this.#followOutput(launched);
      if (record.is_final) return this.#drain();
      return this.#scheduleRestart(RESTART_BACKOFF_CAP_MS);
    }
    if (run.is_ready === false) this.#ready_watch = this.#newReadyWatch();
    const age_ms = Math.max(0, this.#context.clock.wallMs() - run.started_at_ms);
    this.#follow(new Run(this.#context, record, run, launched, this.#output.logs, age_ms));
  }

  /** Resolves when no start is under way. */
  async started(): Promise<void> {
    await this.#starting.catch(() => {});
  }

  /** Cancels the restart that is scheduled, if any: the process has then ended for good. */
  cancelRestart(): void {
    if (!this.record.end || this.record.is_final) return;
    this.restarts.cancel();
    this.record.is_final = true;
    void this.#drain();
  }

  /** Closes files and pipes, with a last save. A process that still runs is left alone. */
  async close(): Promise<void> {
    this.saver.cancelSync();
    this.tree.run?.launched.close();
    this.#ready_watch?.close();
    await Promise.allSettled(this.#output.close());
    await this.saver.save();
    await this.saver.close();
  }

  readonly #onOutput = (stream: OutputStream, data: Buffer): void => {
    this.#ready_watch?.onOutput(stream, data);
  };

  #newReadyWatch(): ReadyWatch | null {
    return watchReadiness(this.#context.clock, this.record, () => {
      void this.saver.save();
      this.#output.changes.notify();
    });
  }

  #onStarted(launched: Launched): void {
    const { record } = this;
    const { clock, boot_id, default_user } = this.#context;
    const as = { user: record.request.user ?? default_user, is_ready: this.#ready_watch?.is_ready ?? null };
    record.run = { pid: launched.pid, boot_id, start_ticks: 0, started_at_ms: clock.wallMs(), ...as };
    record.end = null;
    this.#output.is_ending = false;
    this.#addEvent('started', processStarted(record, record.run));
    this.events.send();
    this.#follow(new Run(this.#context, record, record.run, launched, this.#output.logs, 0));
  }

  #follow(run: Run): void {
    this.tree.follow(run);
    const { timeout_ms } = this.record.request;
    if (timeout_ms !== undefined) {
      run.limit(timeout_ms, this.timers, () => {
        // No process handles SIGTERM while paused, so the grace of a time-out is paused, too.
        this.#output.is_ending = true;
        this.#terminating = this.tree.terminate(this.#context.grace_ms, this.timers);
      });
    }
    run.ended
      .then((end) => this.#onEnd(run, end))
      .catch((error) => this.#warn(error, 'the end of a process could not be handled'));
    void this.#followOutput(run.launched);
    this.#context.freezer.add(() => (run.has_released_pid ? null : run.root));
    this.saver.syncLater();
    this.#output.changes.notify();
  }

  async #followOutput(launched: Launched): Promise<void> {
    await this.#output.follow(launched.output_closed);
    if (this.#output.is_open || !this.record.is_final) return;
    await closeOutput(this.#drain_target);
    this.#context.onIdle();
  }

  async #onEnd(run: Run, { end, event, ...measured }: RunEnd): Promise<void> {
    const { record } = this;
    this.#ready_watch?.close();
    run.launched.stdin?.close();
    const { kind, exit_code, signal } = end;
    const delay_ms = this.restarts.delayAfter(exit_code, measured.duration_ms, record.restart_count);
    record.end = { kind, exit_code, signal, ...measured };
    record.is_final = delay_ms === null;
    this.#addEvent('ended', event);
    // Saved before it is sent: otherwise the next daemon could report the same end again, as unknown.
    void this.saver.save().then(() => this.events.send());
    this.#output.changes.notify();
    if (delay_ms === null) return this.#drain();
    await this.#terminating; // a time-out ends the whole tree before the next run begins
    if (!this.restarts.is_forbidden) this.#scheduleRestart(delay_ms);
  }

  #scheduleRestart(delay_ms: number): void {
    this.restarts.schedule(delay_ms, () => {
      this.#starting = this.#restart();
    });
  }

  async #restart(): Promise<void> {
    const { record } = this;
    record.restart_count += 1;
    try {
      await this.launch();
    } catch (error) {
      this.#warn(error, 'a process could not be restarted');
      const delay_ms = this.restarts.delayAfter(null, 0, record.restart_count);
      if (delay_ms !== null) return this.#scheduleRestart(delay_ms);
      record.is_final = true;
      await this.#drain();
    }
  }

  /** Never rejects: errors of the disk are logged, and the process has ended all the same. */
  async #drain(): Promise<void> {
    void this.saver.save();
    await drainOutput(this.#drain_target);
    this.#is_drained = true;
    this.#output.changes.notify();
    if (!this.#output.is_open) await closeOutput(this.#drain_target);
    this.#context.onIdle();
  }

  /** Puts an event into the record, where it stays until it is stored. */
  #addEvent(what: 'started' | 'ended', event: ProcessEvent): void {
    const { mark, restart_count, unsent } = this.record;
    unsent.push({ key: `${mark}.${restart_count}.${what}`, event });
  }

  #onStored(): void {
    this.saver.saveSoon();
    if (this.#is_drained) this.#context.onIdle();
  }

  #warn(error: unknown, message: string): void {
    this.#context.log.warn({ err: error, process_id: this.record.process_id }, message);
  }
}
