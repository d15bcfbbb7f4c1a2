import { rename } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { allEnded } from '../base/all-ended.ts';
import { type Clock, type Timer, timestamp } from '../base/clock.ts';
import { PROCESS_EVENTS_WAITING_MAX, RESTART_BACKOFF_CAP_MS } from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { ProcessEvent, ResourceUsage } from '../contract/events.ts';
import type { OutputStream, ProcessState, ProcessView, PtySize } from '../contract/processes.ts';
import { OUTPUT_STREAMS } from '../contract/processes.ts';
import { ChangeSignal } from './change-signal.ts';
import { EventQueue } from './event-queue.ts';
import type { Outlet } from './output/outlet.ts';
import { OutputLog } from './output/output-log.ts';
import type { OutputSource } from './output/output-reader.ts';
import { TimerSet } from './pausable-timer.ts';
import { ReadyWatch } from './ready.ts';
import { reattach } from './reattach.ts';
import { type ProcessRecord, RecordFile, removeFolder } from './record.ts';
import { RestartBackoff } from './restart.ts';
import { processStarted, Run, type RunEnd } from './run.ts';
import type { ProcessContext } from './start/context.ts';
import { type Launched, launch } from './start/launch.ts';
import { OpenPipes } from './start/open-pipes.ts';
import { makePipes, removePipes } from './start/pipes.ts';
import { prepare } from './start/prepare.ts';
import { launchTerminal } from './start/terminal.ts';
import type { Stdin } from './stdin.ts';
import { type ProcStat, readStatNow } from './tree/proc.ts';
import { terminateTree, trySignal } from './tree/terminate-tree.ts';
import { rootByTag, type TreeRoot } from './tree/tree.ts';
import { NO_USAGE, usageOf } from './tree/usage.ts';

const SAVE_DELAY_MS = 100;
/** A process that lasts so long is known after a power cut, too. */
const SYNC_DELAY_MS = 1_000;

/**
 * One supervised process over all its runs: running → restarting → running … → ended.
 *
 * A run begins when the kernel has started the program and ends when the program itself has ended, whoever of its
 * descendants lives on; each gives one started event and one end event. The process has ended when no further run
 * follows, and has settled once its output can be read to the end. What must outlive the daemon is in the record,
 * which is saved at every step.
 */
export class SupervisedProcess implements OutputSource {
  readonly record: ProcessRecord;
  readonly changes: ChangeSignal;
  readonly logs: Record<OutputStream, OutputLog>;
  readonly #context: ProcessContext;
  readonly #folder: string;
  readonly #file: RecordFile;
  readonly #events: EventQueue;
  readonly #backoff: RestartBackoff;
  readonly #timers: TimerSet;
  /** The tree of a run that an earlier daemon saw the end of. */
  readonly #former_root: TreeRoot;
  #run: Run | null = null;
  #watch: ReadyWatch | null = null;
  #restart_timer: Timer | null = null;
  #save_timer: Timer | null = null;
  #sync_timer: Timer | null = null;
  #starting: Promise<void> = Promise.resolve();
  #ending: Promise<unknown> = Promise.resolve();
  #may_restart = true;
  #is_drained = false;
  #open_outputs = 0;
  #usage: ResourceUsage = NO_USAGE;

  private constructor(context: ProcessContext, folder: string, record: ProcessRecord, loaded?: LoadedLogs) {
    this.#context = context;
    this.#folder = folder;
    this.record = record;
    this.changes = loaded?.changes ?? new ChangeSignal();
    this.logs = loaded?.logs ?? {
      stdout: OutputLog.create(folder, 'stdout', this.changes),
      stderr: OutputLog.create(folder, 'stderr', this.changes),
    };
    this.#former_root = formerRoot(record, context.boot_id);
    this.#file = new RecordFile(folder, record);
    const { clock, log, emit, random } = context;
    this.#events = new EventQueue(clock, log, emit, record.unsent, () => this.#onStored());
    this.#backoff = new RestartBackoff(record.request.restart ?? { policy: 'never' }, random);
    this.#timers = new TimerSet(clock, context.isPaused);
  }

  /** Starts a new process; `folder` becomes its own. Throws the catalogue's error where it can't be started. */
  static async start(
    context: ProcessContext,
    folder: string,
    record: ProcessRecord,
  ): Promise<SupervisedProcess> {
    const started = new SupervisedProcess(context, folder, record);
    const made = await context.folders.take();
    try {
      await started.#launch(made);
      return started;
    } catch (error) {
      await started.#file.close();
      await removeFolder(made).catch(() => {});
      throw error;
    }
  }

  /** Takes over what an earlier daemon left in `folder`. */
  static async recover(
    context: ProcessContext,
    folder: string,
    record: ProcessRecord,
  ): Promise<SupervisedProcess> {
    const changes = new ChangeSignal();
    const [stdout, stderr] = await Promise.all([
      OutputLog.load(folder, 'stdout', changes),
      OutputLog.load(folder, 'stderr', changes),
    ]);
    const recovered = new SupervisedProcess(context, folder, record, { changes, logs: { stdout, stderr } });
    await recovered.#recover();
    return recovered;
  }

  get is_final(): boolean {
    return this.record.is_final;
  }

  /** Whether somebody may still write to its output: then its folder is in use. */
  get is_output_open(): boolean {
    return this.#open_outputs > 0;
  }

  get is_ready(): boolean | null {
    return this.record.run?.is_ready ?? null;
  }

  get size_bytes(): number {
    return this.logs.stdout.size_bytes + this.logs.stderr.size_bytes;
  }

  get state(): ProcessState {
    const { end, is_final } = this.record;
    if (!end) return this.#context.isPaused() ? 'paused' : 'running';
    return is_final ? end.kind : 'restarting';
  }

  get root(): TreeRoot {
    return this.#run?.root ?? this.#former_root;
  }

  get is_drained(): boolean {
    return this.#is_drained;
  }

  /** The process as the API answers it. `members` spares a look at the kernel's table. */
  async view(members?: readonly ProcStat[]): Promise<ProcessView> {
    const { process_id, command, run, end, restart_count } = this.record;
    return {
      process_id,
      pid: run?.pid ?? 0,
      state: this.state,
      command,
      exit_code: end?.exit_code ?? null,
      signal: end?.signal ?? null,
      started_at: timestamp(run?.started_at_ms ?? this.record.created_at_ms),
      exited_at: end ? timestamp(end.exited_at_ms) : null,
      restart_count,
      ready: this.is_ready,
      resource_usage: await this.usage(members),
    };
  }

  /** What its tree uses now, or what was seen last; of one that has gone, the CPU time alone. */
  async usage(members?: readonly ProcStat[]): Promise<ResourceUsage> {
    if (this.#is_drained && !this.is_output_open) return { ...NO_USAGE, cpu_ms: this.#usage.cpu_ms };
    const found = members ?? (await this.#context.trees.find([this.root]).catch(() => null))?.[0];
    if (!found) return this.#usage;
    const usage = usageOf(found);
    this.#usage = { ...usage, cpu_ms: Math.max(usage.cpu_ms, this.#usage.cpu_ms) };
    return this.#usage;
  }

  /** The writing end of its stdin. `conflict` where it has none, or has ended. */
  stdin(): Stdin {
    const run = this.#liveRun();
    if (!run.launched.stdin) throw new ApiError('conflict', 'This process has no stdin to write to.');
    return run.launched.stdin;
  }

  /** Sends a signal to the group or the leader; `final`: no restart follows an end. */
  signal(signal: NodeJS.Signals, scope: 'group' | 'leader', final = false): void {
    if (final) this.#may_restart = false;
    if (final && this.state === 'restarting') {
      this.#giveUpRestart();
      return;
    }
    const run = this.#liveRun();
    run.requested_signals.add(signal);
    const { pid } = run.info;
    if (!trySignal(scope === 'group' ? -pid : pid, signal)) throw endedConflict();
  }

  resize(size: PtySize): void {
    const { launched } = this.#liveRun();
    if (!launched.resize) throw new ApiError('conflict', 'This process has no terminal.');
    launched.resize(size);
  }

  /** Ends the tree, SIGTERM first; no restart follows. Resolves when it has ended and its output can be read. */
  async terminate(grace_ms: number): Promise<void> {
    this.#may_restart = false;
    await this.#starting.catch(() => {});
    this.#giveUpRestart();
    const is_empty = await this.#terminateTree(grace_ms);
    if (!is_empty) throw new ApiError('timeout', 'The kernel does not let the process end.');
    await this.drained();
  }

  /** Resolves when the process has ended for good and its output can be read to the end. */
  async drained(): Promise<void> {
    while (!this.#is_drained) await this.changes.after(this.changes.version);
  }

  /** Resolves when every event so far is stored. */
  async flushEvents(): Promise<void> {
    await this.#events.flush();
  }

  /** Resolves when no start is under way. */
  async started(): Promise<void> {
    await this.#starting.catch(() => {});
  }

  /** Lets its time stand still; the caller stops the tree. */
  pauseTimers(): void {
    this.#timers.pause();
  }

  resumeTimers(): void {
    this.#timers.resume();
  }

  /** Lets go of files and pipes; whoever still runs goes on. */
  async close(): Promise<void> {
    this.#sync_timer?.cancel();
    this.#run?.launched.close();
    this.#watch?.close();
    await Promise.allSettled(OUTPUT_STREAMS.map((stream) => this.logs[stream].close()));
    await this.#save();
    await this.#file.close();
  }

  async save(): Promise<void> {
    await this.#save();
  }

  /** Removes it from the disk, once it has been closed. */
  async remove(): Promise<void> {
    this.#save_timer?.cancel();
    await this.#file.close(); // no save may be under way when its folder goes
    await removeFolder(this.#folder);
  }

  #liveRun(): Run {
    if (!this.#run || this.#run.has_released_pid || this.record.end) throw endedConflict();
    return this.#run;
  }

  /** `made`: a folder that was made ahead; it becomes the process's own just before the program runs. */
  async #launch(made?: string): Promise<void> {
    const { clock } = this.#context;
    const { pty } = this.record.request;
    this.#watch = this.#newWatch();
    const onOutput = (stream: OutputStream, data: Buffer) => this.#watch?.onOutput(stream, data);
    const outlet = { clock, logs: this.logs, onOutput };
    const opening = pty ? null : this.#openPipes(outlet, made);
    this.#file.moveTo(made ?? this.#folder);
    try {
      const [spec, pipes] = await allEnded([prepare(this.#context, this.record), opening, this.#file.save()]);
      await allEnded([
        made === undefined ? null : rename(made, this.#folder),
        spec.user && pipes?.giveTo(spec.user),
      ]);
      this.#file.moveTo(this.#folder);
      const onSignalKey = (signal: string) => this.#run?.requested_signals.add(signal);
      if (pipes) this.#onStarted(await launch(spec, pipes));
      else if (pty) this.#onStarted(await launchTerminal(spec, pty, outlet, onSignalKey));
      await turn(); // its event goes to the disk now, the rest is done meanwhile
      this.#nameRun();
    } catch (error) {
      this.#watch?.close();
      await opening?.then(
        (pipes) => pipes.close(),
        () => {},
      );
      throw error;
    }
  }

  async #openPipes(outlet: Outlet, made?: string): Promise<OpenPipes> {
    const folder = this.#folder;
    if (made === undefined) {
      await removePipes(folder); // those of the last run
      await makePipes([folder]);
    }
    const { stdin = 'ignore' } = this.record.request;
    return OpenPipes.open({ ...outlet, made_in: made ?? folder, folder, stdin });
  }

  #newWatch(): ReadyWatch | null {
    const { ready } = this.record.request;
    if (!ready) return null;
    return new ReadyWatch(this.#context.clock, ready, () => {
      if (!this.record.run) return; // seen before the start is done, and noted with it
      this.record.run.is_ready = true;
      void this.#save();
      this.changes.notify();
    });
  }

  #onStarted(launched: Launched): void {
    const { record } = this;
    const { clock, boot_id } = this.#context;
    const is_ready = this.#watch ? this.#watch.is_ready : null;
    record.run = { pid: launched.pid, boot_id, start_ticks: 0, started_at_ms: clock.wallMs(), is_ready };
    record.end = null;
    this.#note('started', processStarted(record, record.run));
    this.#events.send();
    this.#follow(new Run(this.#context, record, record.run, launched, this.logs, 0));
  }

  /** Notes what names the run for good, while its pid is still its own whatever has become of it. */
  #nameRun(): void {
    const { run } = this.record;
    if (!run || this.#run?.has_released_pid) return;
    try {
      run.start_ticks = readStatNow(run.pid)?.start_ticks ?? 0;
    } catch (error) {
      this.#warn(error, 'the next daemon will know this process by its tag alone');
    }
    this.#context.oom.rankBefore(run.pid);
    void this.#save();
  }

  #follow(run: Run): void {
    this.#run = run;
    this.#usage = NO_USAGE;
    const { timeout_ms } = this.record.request;
    if (timeout_ms !== undefined) {
      run.limit(timeout_ms, this.#timers, () => {
        // Nobody handles SIGTERM while paused: the grace of a time-out stands still, too.
        this.#ending = this.#terminateTree(this.#context.grace_ms, this.#timers);
      });
    }
    run.ended
      .then((end) => this.#onEnd(run, end))
      .catch((error) => this.#warn(error, 'end of a process not handled'));
    void this.#followOutput(run.launched);
    this.#context.freezer.add(() => (run.has_released_pid ? null : run.root));
    this.#sync_timer ??= this.#context.clock.after(SYNC_DELAY_MS, () => void this.#sync());
    this.changes.notify();
  }

  async #followOutput(launched: Launched): Promise<void> {
    this.#open_outputs += 1;
    await launched.output_closed;
    this.#open_outputs -= 1;
    if (this.#open_outputs > 0 || !this.record.is_final) return;
    await this.#closeOutput();
    this.#context.onIdle();
  }

  async #onEnd(run: Run, { end, event, exited_at_ms, duration_ms }: RunEnd): Promise<void> {
    const { record } = this;
    this.#watch?.close();
    run.launched.stdin?.close();
    const { exit_code } = end;
    const outcome = { exit_code, uptime_ms: duration_ms, restart_count: record.restart_count };
    const delay_ms = this.#may_restart ? this.#backoff.after(outcome) : null;
    record.end = { kind: end.kind, exit_code, signal: end.signal, exited_at_ms };
    record.is_final = delay_ms === null;
    this.#note('ended', event);
    // It is in the record first: once it was told, the next daemon must not take the end for an unknown one.
    void this.#save().then(() => this.#events.send());
    this.changes.notify();
    if (delay_ms === null) return this.#drain();
    await this.#ending; // a time-out ends the whole tree before the next run begins
    if (this.#may_restart) this.#scheduleRestart(delay_ms);
  }

  #scheduleRestart(delay_ms: number): void {
    this.#restart_timer = this.#timers.after(delay_ms, () => {
      this.#restart_timer = null;
      if (this.#events.length > PROCESS_EVENTS_WAITING_MAX)
        return this.#scheduleRestart(RESTART_BACKOFF_CAP_MS);
      this.#starting = this.#restart();
    });
  }

  async #restart(): Promise<void> {
    const { record } = this;
    record.restart_count += 1;
    try {
      await this.#launch();
    } catch (error) {
      this.#warn(error, 'restart failed');
      const outcome = { exit_code: null, uptime_ms: 0, restart_count: record.restart_count };
      const delay_ms = this.#may_restart ? this.#backoff.after(outcome) : null;
      if (delay_ms !== null) return this.#scheduleRestart(delay_ms);
      record.is_final = true;
      await this.#drain();
    }
  }

  #giveUpRestart(): void {
    if (!this.record.end || this.record.is_final) return;
    this.#restart_timer?.cancel();
    this.#restart_timer = null;
    this.record.is_final = true;
    void this.#drain();
  }

  /** Never rejects: what the disk refuses is told in the log, and the process has ended all the same. */
  async #drain(): Promise<void> {
    void this.#save();
    await Promise.all(OUTPUT_STREAMS.map((stream) => this.logs[stream].flush()));
    this.#tellLost();
    this.#is_drained = true;
    this.changes.notify();
    if (!this.is_output_open) await this.#closeOutput();
    this.#context.onIdle();
  }

  #tellLost(): void {
    const { stdout, stderr } = this.logs;
    const lost_bytes = stdout.dropped_bytes + stderr.dropped_bytes;
    if (lost_bytes === 0) return;
    const { process_id } = this.record;
    this.#context.log.warn({ process_id, lost_bytes }, 'output of a process was lost: the disk refused it');
  }

  async #closeOutput(): Promise<void> {
    const closed = OUTPUT_STREAMS.map((stream) => this.logs[stream].close());
    for (const step of await Promise.allSettled([...closed, removePipes(this.#folder)])) {
      if (step.status === 'rejected') this.#warn(step.reason, 'output or pipes of a process not let go of');
    }
  }

  #terminateTree(grace_ms: number, timing: Pick<Clock, 'after'> = this.#context.clock): Promise<boolean> {
    const { clock, trees } = this.#context;
    const target = {
      members: async () => (await trees.find([this.root]))[0] ?? [],
      group: () => (this.root.ended_ticks === null ? this.root.pid : null),
      onSignal: (signal: string) => this.#run?.requested_signals.add(signal),
      leader_ended: this.#run?.ended ?? Promise.resolve(),
      after: (delay_ms: number, run: () => void) => timing.after(delay_ms, run),
      isPaused: this.#context.isPaused,
    };
    return terminateTree(clock, target, grace_ms);
  }

  async #recover(): Promise<void> {
    const { record } = this;
    this.#events.send();
    const { run } = record;
    if (!run) throw new Error('a record without a run cannot be recovered');
    const onOutput = (stream: OutputStream, data: Buffer) => this.#watch?.onOutput(stream, data);
    const launched = await reattach(
      this.#context,
      { run, tag: record.mark },
      this.#folder,
      this.logs,
      onOutput,
    );
    if (record.end) {
      void this.#followOutput(launched);
      if (record.is_final) return this.#drain();
      return this.#scheduleRestart(RESTART_BACKOFF_CAP_MS);
    }
    if (run.is_ready === false) this.#watch = this.#newWatch();
    const age_ms = Math.max(0, this.#context.clock.wallMs() - run.started_at_ms);
    this.#follow(new Run(this.#context, record, run, launched, this.logs, age_ms));
  }

  /** Puts an event into the record, from where it is emitted until it is stored. */
  #note(what: 'started' | 'ended', event: ProcessEvent): void {
    const { mark, restart_count, unsent } = this.record;
    unsent.push({ key: `${mark}.${restart_count}.${what}`, event });
  }

  #onStored(): void {
    this.#saveSoon();
    if (this.#is_drained) this.#context.onIdle();
  }

  /** Saves what may be lost without harm, together with what else changes in a moment. */
  #saveSoon(): void {
    this.#save_timer ??= this.#context.clock.after(SAVE_DELAY_MS, () => void this.#save());
  }

  /** Once: what changes later is of use only to a daemon that finds the process alive. */
  async #sync(): Promise<void> {
    if (!this.record.is_final)
      await this.#file.sync().catch((error) => this.#warn(error, 'process record not synced'));
  }

  #save(): Promise<void> {
    this.#save_timer?.cancel();
    this.#save_timer = null;
    return this.#file.save().catch((error) => this.#warn(error, 'process record not saved'));
  }

  #warn(error: unknown, message: string): void {
    this.#context.log.warn({ err: error, process_id: this.record.process_id }, message);
  }
}

function formerRoot({ mark, run }: ProcessRecord, boot_id: string): TreeRoot {
  if (run?.boot_id !== boot_id) return rootByTag(mark); // the number means nothing after a restart of the machine
  const { pid, start_ticks, ended_ticks = 0 } = run;
  return { pid, start_ticks, tag: mark, ended_ticks, proven: new Map() };
}

interface LoadedLogs {
  changes: ChangeSignal;
  logs: Record<OutputStream, OutputLog>;
}

function endedConflict(): ApiError {
  return new ApiError('conflict', 'The process has ended.');
}
