import type { Clock, Timer } from '../base/clock.ts';
import type { DirectoryScanner } from './directory-scanner.ts';
import { COMPARE_MIN_MS, COMPARE_SHARE } from './index/limits.ts';
import type { RootGate } from './root-gate.ts';
import type { WatchSet } from './signals/watch-set.ts';

interface ComparisonOptions {
  clock: Clock;
  coverage: WatchSet;
  lister: DirectoryScanner;
  /** See Prober. */
  tables: ReadonlyMap<string, string>;
  gate: RootGate;
  /** Has what no watch covers compared. */
  compare: () => void;
}

/** Has what the kernel does not tell of compared at intervals, and says what that is. */
export class PeriodicRescan {
  readonly #options: ComparisonOptions;
  #timer: Timer | null = null;
  #interval_ms = COMPARE_MIN_MS;
  #busy_before_ms = 0;

  constructor(options: ComparisonOptions) {
    this.#options = options;
  }

  /** Starts the interval where something needs it; there is no timer otherwise. */
  update(): void {
    const { clock, coverage, lister } = this.#options;
    if (this.#timer || (coverage.refused === 0 && lister.remote.size === 0)) return;
    const cost_ms = lister.busy_ms - this.#busy_before_ms;
    this.#interval_ms = Math.max(COMPARE_MIN_MS, cost_ms * COMPARE_SHARE);
    this.#timer = clock.after(this.#interval_ms, () => {
      this.#timer = null;
      this.#busy_before_ms = lister.busy_ms;
      this.#options.compare();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** What is compared at intervals or not seen at all; null where watches cover everything. */
  degraded(): string | null {
    const { coverage, lister, tables, gate } = this.#options;
    const every = `compared every ${Math.ceil(this.#interval_ms / 1_000)} s`;
    const reasons: string[] = gate.refusal === null ? [] : [gate.refusal];
    if (coverage.refused > 0) {
      const limit =
        'the limit of inotify watches is reached (fs.inotify.max_user_watches, max_user_instances)';
      reasons.push(
        `${limit}: ${coverage.refused} directories are ${every}, among them ${coverage.example()}`,
      );
    }
    if (lister.remote.size > 0) {
      const kinds = [...new Set(lister.remote.values())].join(', ');
      reasons.push(`changes made elsewhere on ${kinds} are not signalled: ${every}`);
    }
    if (tables.size > 0) {
      const [[path, name] = ['', '']] = tables;
      reasons.push(
        `${tables.size} directories are tables of the kernel (${name} at ${JSON.stringify(path)}): not watched`,
      );
    }
    if (lister.hidden.size > 0)
      reasons.push(`${lister.hidden.size} directories cannot be read, or not all in them`);
    return reasons.length > 0 ? reasons.join('; ') : null;
  }
}
