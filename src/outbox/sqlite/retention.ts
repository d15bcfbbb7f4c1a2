import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Service } from '../../base/service.ts';
import type { OutboxClient } from './client.ts';

/** How often records are removed: within the contract's 10 s. */
const INTERVAL_MS = 5_000;

/** What retention asks of the outbox. */
type PrunableStore = Pick<OutboxClient, 'counts' | 'isPruneDue' | 'prune'>;

/**
 * Removes finished records that were kept long enough and gives their space back to the file system.
 * Source: contract section 3, Retention.
 */
export class Retention implements Service {
  readonly #store: PrunableStore;
  readonly #clock: Clock;
  readonly #log: Log;
  #timer: Timer | null = null;
  #is_running = false;

  constructor(store: PrunableStore, clock: Clock, log: Log) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /** Starts the timer. */
  async start(): Promise<void> {
    this.#is_running = true;
    this.#schedule();
  }

  /** Removes nothing more. Idempotent. */
  async stop(): Promise<void> {
    this.#is_running = false;
    this.#timer?.cancel();
  }

  #schedule(): void {
    this.#timer?.cancel();
    if (this.#is_running) this.#timer = this.#clock.after(INTERVAL_MS, () => void this.#prune());
  }

  async #prune(): Promise<void> {
    const { delivered, failed, expired, foreign } = this.#store.counts();
    try {
      let more = delivered + failed + expired + foreign > 0 && (await this.#store.isPruneDue());
      while (more && this.#is_running) ({ more } = await this.#store.prune());
    } catch (error) {
      this.#log.warn({ reason: (error as Error).message }, 'cannot remove old records; retrying');
    }
    this.#schedule();
  }
}
