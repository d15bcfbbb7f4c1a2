import type { Timer } from '../base/clock.ts';
import { CLOCK_TICK_MS } from '../base/linux/procfs.ts';
import { ApiError } from '../contract/errors.ts';
import type { ProcessEvent } from '../contract/events.ts';
import type { OutputStream } from '../contract/words.ts';
import type { ProcessContext } from './context.ts';
import { classifyEnd, type EndOfRun, endEvent } from './exit/exit-classifier.ts';
import type { OutputLog } from './output/output-log.ts';
import { previewOf } from './output/preview.ts';
import type { TimerSet } from './pausable-timer.ts';
import { type ProcessRecord, type RunRecord, type UnsentEvent, unsentEvent } from './record.ts';
import type { ExitStatus, Launched } from './start/launch.ts';
import type { TreeRoot } from './tree/tree.ts';

/** How a run ended and when, with its event. */
export interface RunEnd {
  end: EndOfRun;
  event: ProcessEvent;
  timed_out: boolean;
  exited_at_ms: number;
  duration_ms: number;
}

/** One run of a program: from the moment the kernel has started it to the end of that very process. */
export class Run {
  readonly info: RunRecord;
  readonly launched: Launched;
  readonly root: TreeRoot;
  /** Signals that this daemon was requested to send, or sent itself. */
  readonly requested_signals = new Set<string>();
  /** Resolves when the program itself has ended and what it wrote is in the logs. */
  readonly ended: Promise<RunEnd>;
  readonly #context: ProcessContext;
  readonly #record: ProcessRecord;
  readonly #logs: Record<OutputStream, OutputLog>;
  readonly #started_monotonic_ms: number;
  #time_limit: Timer | null = null;
  #has_timed_out = false;

  /** `age_ms`: how long ago it started, for a run that an earlier daemon started. */
  constructor(
    context: ProcessContext,
    record: ProcessRecord,
    info: RunRecord,
    launched: Launched,
    logs: Record<OutputStream, OutputLog>,
    age_ms: number,
  ) {
    this.#context = context;
    this.#record = record;
    this.info = info;
    this.launched = launched;
    this.#logs = logs;
    this.#started_monotonic_ms = context.clock.monotonicMs() - age_ms;
    this.root = {
      pid: info.pid,
      get start_ticks() {
        return info.start_ticks;
      },
      tag: record.mark,
      get ended_ticks() {
        return launched.endedTicks();
      },
      proven: new Map(),
    };
    this.ended = launched.exited.then((status) => this.#onExit(status));
  }

  /** Whether its pid may be reused from now on. True possibly before `ended` resolves. */
  get has_released_pid(): boolean {
    return this.launched.endedTicks() !== null;
  }

  /** Calls `onTimeout` once the run has lasted `timeout_ms`, pauses not counted. */
  limit(timeout_ms: number, timers: TimerSet, onTimeout: () => void): void {
    const age_ms = this.#context.clock.monotonicMs() - this.#started_monotonic_ms;
    this.#time_limit = timers.limit(Math.max(0, timeout_ms - age_ms), () => {
      this.#has_timed_out = true;
      onTimeout();
    });
  }

  async #onExit(status: ExitStatus): Promise<RunEnd> {
    this.info.ended_ticks = this.launched.endedTicks() ?? 0;
    this.#time_limit?.cancel();
    const { clock, oom } = this.#context;
    const exited_at_ms = clock.wallMs();
    const duration_ms = Math.round(clock.monotonicMs() - this.#started_monotonic_ms);
    this.launched.drain();
    const { process_id, restart_count } = this.#record;
    const { pid, start_ticks } = this.info;
    const previews = {
      stdout_preview: previewOf(this.#logs.stdout.tail),
      stderr_preview: previewOf(this.#logs.stderr.tail),
    };
    const facts = {
      pid,
      started_boot_ms: start_ticks * CLOCK_TICK_MS,
      requested_signals: this.requested_signals,
    };
    const end = await classifyEnd(status, facts, oom);
    const timed_out = this.#has_timed_out;
    const details = { process_id, pid, duration_ms, timed_out, ...previews, restart_count };
    return { end, event: endEvent(end, details, exited_at_ms), timed_out, exited_at_ms, duration_ms };
  }
}

/** Notes a run that has begun in the record, by default just now, and gives it with the event that tells of it. */
export function beginRun(
  { boot_id, default_user, clock }: ProcessContext,
  record: ProcessRecord,
  begun: Pick<RunRecord, 'pid' | 'start_ticks' | 'is_ready'> & Partial<RunRecord>,
): { run: RunRecord; unsent: UnsentEvent } {
  const user = record.request.user ?? default_user;
  const run = { boot_id, started_at_ms: clock.wallMs(), user, ...begun };
  record.run = run;
  record.end = null;
  return { run, unsent: unsentEvent(record, 'started', processStarted(record, run)) };
}

/** The event of a start. Source: contract section 2, `process.started`. */
function processStarted(record: ProcessRecord, run: RunRecord): ProcessEvent {
  const { process_id, command, cwd, request, restart_count } = record;
  const payload = { process_id, pid: run.pid, command, cwd, name: request.name ?? null, restart_count };
  return { event_type: 'process.started', happened_at_ms: run.started_at_ms, payload };
}

/** The error for what cannot be done to a process that has ended. */
export function endedConflict(): ApiError {
  return new ApiError('conflict', 'The process has ended.');
}
