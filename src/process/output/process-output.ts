import type { Log } from '../../base/log.ts';
import { OUTPUT_STREAMS, type OutputStream } from '../../contract/words.ts';
import { ChangeSignal } from '../change-signal.ts';
import type { ProcessContext } from '../context.ts';
import type { ProcessRecord } from '../record.ts';
import { removePipes } from '../start/pipes.ts';
import { LosslessFollowers } from './lossless-followers.ts';
import { OutputLog } from './output-log.ts';

/** The kept output of one process over all its runs. */
export class ProcessOutput {
  /** Notified when there is more to read. */
  readonly changes: ChangeSignal;
  readonly logs: Readonly<Record<OutputStream, OutputLog>>;
  /** The followers that must not miss a byte. */
  readonly lossless: LosslessFollowers;
  readonly #log: Log;
  readonly #folder: string;
  readonly #process_id: string;
  #open_runs = 0;

  private constructor(
    { clock, log }: ProcessContext,
    folder: string,
    { process_id, is_lossless, is_final }: ProcessRecord,
    changes: ChangeSignal,
    logs: Record<OutputStream, OutputLog>,
  ) {
    this.#log = log;
    this.#folder = folder;
    this.#process_id = process_id;
    this.changes = changes;
    this.logs = logs;
    this.lossless = new LosslessFollowers(clock, logs);
    if (is_lossless && !is_final) this.lossless.expect();
  }

  /** The output of a new process, whose own `folder` is; if it is lossless, it waits for its first follower. */
  static create(context: ProcessContext, folder: string, record: ProcessRecord): ProcessOutput {
    const changes = new ChangeSignal();
    const stdout = OutputLog.create(folder, 'stdout', changes);
    const stderr = OutputLog.create(folder, 'stderr', changes);
    return new ProcessOutput(context, folder, record, changes, { stdout, stderr });
  }

  /** The same of the output that an earlier daemon left in `folder`. Throws the system's error if it cannot be read. */
  static async load(context: ProcessContext, folder: string, record: ProcessRecord): Promise<ProcessOutput> {
    const changes = new ChangeSignal();
    const [stdout, stderr] = await Promise.all([
      OutputLog.load(folder, 'stdout', changes),
      OutputLog.load(folder, 'stderr', changes),
    ]);
    return new ProcessOutput(context, folder, record, changes, { stdout, stderr });
  }

  /** Whether a process may still write to the output of any run. The folder is in use while this is true. */
  get is_open(): boolean {
    return this.#open_runs > 0;
  }

  /** Size of both streams on disk. */
  get size_bytes(): number {
    return this.logs.stdout.size_bytes + this.logs.stderr.size_bytes;
  }

  /** Counts a run's output as open until `closed` resolves; resolves then. */
  async follow(closed: Promise<void>): Promise<void> {
    this.#open_runs += 1;
    await closed;
    this.#open_runs -= 1;
  }

  /** Whether the process is to end: it waits for lossless followers only once no more output can be kept for them. */
  set is_ending(is_ending: boolean) {
    for (const stream of OUTPUT_STREAMS) this.logs[stream].holds.widen(is_ending);
  }

  /** Resolves when everything accepted is written or given up; logs how much was lost. Never rejects. */
  async drain(): Promise<void> {
    const { stdout, stderr } = this.logs;
    await Promise.all([stdout.flush(), stderr.flush()]);
    const lost_bytes = stdout.dropped_bytes + stderr.dropped_bytes;
    if (lost_bytes === 0) return;
    this.#log.warn(
      { process_id: this.#process_id, lost_bytes },
      'output of a process was lost: it could not be written to disk',
    );
  }

  /** Closes the files of both streams. They are opened again if more output arrives. Never rejects. */
  async close(): Promise<void> {
    await Promise.allSettled([this.logs.stdout.close(), this.logs.stderr.close()]);
  }

  /** Closes the files and removes the pipes, once no process can write to them. Errors are logged; never rejects. */
  async end(): Promise<void> {
    const { stdout, stderr } = this.logs;
    for (const step of await Promise.allSettled([
      stdout.close(),
      stderr.close(),
      removePipes(this.#folder),
    ])) {
      if (step.status === 'fulfilled') continue;
      this.#log.warn(
        { err: step.reason, process_id: this.#process_id },
        'the output or pipes of a process could not be closed',
      );
    }
  }
}
