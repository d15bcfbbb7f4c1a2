import type { Clock } from '../../base/clock.ts';
import { OUTPUT_STREAMS, type OutputStream } from '../../contract/processes.ts';
import { ChangeSignal } from '../change-signal.ts';
import { LosslessFollowers } from './lossless-followers.ts';
import { OutputLog } from './output-log.ts';

/** The kept output of one process over all its runs. */
export class ProcessOutput {
  /** Notified when there is more to read. */
  readonly changes: ChangeSignal;
  readonly logs: Readonly<Record<OutputStream, OutputLog>>;
  /** The followers that must not miss a byte. */
  readonly lossless: LosslessFollowers;
  #open_runs = 0;

  private constructor(
    clock: Clock,
    changes: ChangeSignal,
    logs: Record<OutputStream, OutputLog>,
    is_lossless: boolean,
  ) {
    this.changes = changes;
    this.logs = logs;
    this.lossless = new LosslessFollowers(clock, logs);
    if (is_lossless) this.lossless.expect();
  }

  /** The output of a new process; with `is_lossless` it waits for its first follower. */
  static create(clock: Clock, folder: string, is_lossless = false): ProcessOutput {
    const changes = new ChangeSignal();
    const stdout = OutputLog.create(folder, 'stdout', changes);
    const stderr = OutputLog.create(folder, 'stderr', changes);
    return new ProcessOutput(clock, changes, { stdout, stderr }, is_lossless);
  }

  /** The same of the output that an earlier daemon left in `folder`. Throws the system's error if it cannot be read. */
  static async load(clock: Clock, folder: string, is_lossless = false): Promise<ProcessOutput> {
    const changes = new ChangeSignal();
    const [stdout, stderr] = await Promise.all([
      OutputLog.load(folder, 'stdout', changes),
      OutputLog.load(folder, 'stderr', changes),
    ]);
    return new ProcessOutput(clock, changes, { stdout, stderr }, is_lossless);
  }

  /** Whether a process may still write to the output of any run. The folder is in use while this is true. */
  get is_open(): boolean {
    return this.#open_runs > 0;
  }

  /** Size of both streams on disk. */
  get size_bytes(): number {
    return this.logs.stdout.size_bytes + this.logs.stderr.size_bytes;
  }

  /** Bytes of both streams that the disk refused since the daemon started. */
  get dropped_bytes(): number {
    return this.logs.stdout.dropped_bytes + this.logs.stderr.dropped_bytes;
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

  /** Resolves when everything accepted so far is written or given up. */
  async flush(): Promise<void> {
    await Promise.all(OUTPUT_STREAMS.map((stream) => this.logs[stream].flush()));
  }

  /** Closes the files of both streams. They are opened again if more output arrives. */
  close(): Promise<void>[] {
    return OUTPUT_STREAMS.map((stream) => this.logs[stream].close());
  }
}
