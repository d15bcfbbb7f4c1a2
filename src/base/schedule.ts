import type { Clock, Timer } from './clock.ts';
import type { Log } from './log.ts';
import type { Service } from './service.ts';

/** The delay before a failed job is retried. */
const RETRY_MS = 1_000;

/** Work that is repeated: each run says when the next one is due. */
export interface Job {
  /** Unique in its schedule; used by `wake` and in the log. */
  name: string;
  /** Does the work once; resolves with the delay until the next run, in ms. */
  run(): Promise<number>;
}

/** Runs each job when it is due. A job never overlaps with itself, and no job waits for another. */
export class Schedule implements Service {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #reason_of: (error: unknown) => string;
  readonly #entries = new Map<string, Entry>();
  #is_running = false;

  /** `reasonOf` turns a job's error into one line for the log. */
  constructor(clock: Clock, log: Log, reasonOf = (error: unknown) => (error as Error).message) {
    this.#clock = clock;
    this.#log = log;
    this.#reason_of = reasonOf;
  }

  /** Adds a job; call it before `start`. */
  add(job: Job): void {
    this.#entries.set(job.name, { job, timer: null, running: null, is_woken: false });
  }

  /** Starts all jobs at once. */
  async start(): Promise<void> {
    this.#is_running = true;
    for (const entry of this.#entries.values()) this.#call(entry);
  }

  /** Runs a job now, or again right after the present run. Does nothing for an unknown name or before `start`. */
  wake(name: string): void {
    const entry = this.#entries.get(name);
    if (!entry || !this.#is_running) return;
    if (entry.running !== null) entry.is_woken = true;
    else this.#call(entry);
  }

  /** Starts no further run and waits for the runs in progress. Idempotent. */
  async stop(): Promise<void> {
    this.#is_running = false;
    for (const { timer } of this.#entries.values()) timer?.cancel();
    await Promise.allSettled([...this.#entries.values()].map(({ running }) => running));
  }

  #call(entry: Entry): void {
    entry.timer?.cancel();
    entry.is_woken = false;
    entry.running = this.#run(entry.job).then((delay_ms) => {
      entry.running = null;
      if (!this.#is_running) return;
      if (entry.is_woken) this.#call(entry);
      else entry.timer = this.#clock.after(delay_ms, () => this.#call(entry));
    });
  }

  async #run({ name, run }: Job): Promise<number> {
    try {
      return await run();
    } catch (error) {
      this.#log.warn({ job: name, reason: this.#reason_of(error) }, 'a job failed and will be retried');
      return RETRY_MS;
    }
  }
}

interface Entry {
  job: Job;
  timer: Timer | null;
  running: Promise<void> | null;
  is_woken: boolean;
}
