import type { Log } from '../../base/log.ts';
import { gauge, type Metric } from '../../base/metrics.ts';
import type { Sight } from '../sandboxes/ports.ts';

/**
 * The recorded sandboxes of which nothing is in sight here, neither files nor Pod: they may run elsewhere, so that nothing
 * is concluded from it. Each is told in the log once. Source: contract section 7, "What runs and what is recorded".
 */
export class UnseenSandboxes implements Sight {
  readonly #log: Log;
  #watched: ReadonlySet<string> = new Set();
  #recorded: ReadonlySet<string> = new Set();
  readonly #deleting = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Those that a watch over all sandboxes has not seen; it replaces what the last one said. */
  watched(sandbox_ids: ReadonlySet<string>): void {
    for (const sandbox_id of sandbox_ids) {
      if (this.#has(sandbox_id)) continue;
      this.#log.error({ sandbox_id }, 'nothing of a recorded sandbox is in sight here: its status stays');
    }
    this.#watched = sandbox_ids;
  }

  /** See `Sight`. */
  recorded(sandbox_ids: ReadonlySet<string>): void {
    this.#recorded = sandbox_ids;
  }

  /** Whether one was recorded as running or paused, some seconds ago at most. */
  wasRecorded(sandbox_id: string): boolean {
    return this.#recorded.has(sandbox_id);
  }

  /** One that is deleted, whose events nobody can hand over. */
  deleting(sandbox_id: string): void {
    if (!this.#deleting.has(sandbox_id)) {
      this.#log.error({ sandbox_id }, 'nothing of a deleted sandbox is in sight here: its cleanup waits');
    }
    this.#deleting.add(sandbox_id);
  }

  /** One that is deleted is seen again, or is given up. */
  seen(sandbox_id: string): void {
    this.#deleting.delete(sandbox_id);
  }

  /** Why `/readyz` says `degraded`, or null. */
  trouble(): string | null {
    return this.#count === 0 ? null : `${this.#count} recorded sandboxes are not in sight here`;
  }

  /** The metric for the registry. */
  metrics(): Metric[] {
    const help = 'Recorded sandboxes of which this manager sees neither files nor a Pod.';
    return [gauge('runtime_unseen', help, () => this.#count)];
  }

  get #count(): number {
    return new Set([...this.#watched, ...this.#deleting]).size;
  }

  #has(sandbox_id: string): boolean {
    return this.#watched.has(sandbox_id) || this.#deleting.has(sandbox_id);
  }
}
