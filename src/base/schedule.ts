import type { Clock, Timer } from './clock.ts';
import type { Log } from './log.ts';
import type { Service } from './service.ts';

/** How long until a job that failed is tried again. */
const RETRY_MS = 1_000;

/** Something that is looked after again and again: it tells how long until it wants to be called next. */
export interface Job {
  name: string;
  /** Ms until the next call. */
  run(): Promise<number>;
}

/** Calls every job when its time comes, one call of a job at a time; no job waits for another. */
export class Schedule implements Service {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #reason_of: (error: unknown) => string;
  readonly #entries = new Map<string, Entry>();
  #is_running = false;

  /** `reasonOf` says in one line, for the log, why a job failed. */
  constructor(clock: Clock, log: Log, reasonOf = (error: unknown) => (error as Error).message) {
    this.#clock = clock;
    this.#log = log;
    this.#reason_of = reasonOf;
  }

  add(job: Job): void {
    this.#entries.set(job.name, { job, timer: null, running: null, is_woken: false });
  }

  async start(): Promise<void> {
    this.#is_running = true;
    for (const entry of this.#entries.values()) this.#call(entry);
  }

  /** Calls a job now: there may be something for it. */
  wake(name: string): void {
    const entry = this.#entries.get(name);
    if (!entry || !this.#is_running) return;
    if (entry.running !== null) entry.is_woken = true;
    else this.#call(entry);
  }

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
      this.#log.warn({ job: name, reason: this.#reason_of(error) }, 'a job failed and is tried again');
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
