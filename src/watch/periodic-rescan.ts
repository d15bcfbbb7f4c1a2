import type { Clock, Timer } from '../base/clock.ts';
import type { DirectoryScanner } from './directory-scanner.ts';
import { RESCAN_MIN_MS, RESCAN_SHARE } from './index/limits.ts';
import type { RootGate } from './root-gate.ts';
import type { WatchSet } from './signals/watch-set.ts';

interface PeriodicRescanOptions {
  clock: Clock;
  watch_set: WatchSet;
  scanner: DirectoryScanner;
  /** See Prober. */
  tables: ReadonlyMap<string, string>;
  gate: RootGate;
  /** Has what no watch covers compared. */
  compare: () => void;
}

/** Has what the kernel does not tell of compared at intervals, and says what that is. */
export class PeriodicRescan {
  readonly #options: PeriodicRescanOptions;
  #timer: Timer | null = null;
  #interval_ms = RESCAN_MIN_MS;
  #busy_before_ms = 0;

  constructor(options: PeriodicRescanOptions) {
    this.#options = options;
  }

  /** Starts the interval where something needs it; there is no timer otherwise. */
  update(): void {
    const { clock, watch_set, scanner } = this.#options;
    if (this.#timer || (watch_set.refused === 0 && scanner.remote.size === 0)) return;
    const cost_ms = scanner.busy_ms - this.#busy_before_ms;
    this.#interval_ms = Math.max(RESCAN_MIN_MS, cost_ms * RESCAN_SHARE);
    this.#timer = clock.after(this.#interval_ms, () => {
      this.#timer = null;
      this.#busy_before_ms = scanner.busy_ms;
      this.#options.compare();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** What is compared at intervals or not seen at all; null where watches cover everything. */
  degraded(): string | null {
    const { watch_set, scanner, tables, gate } = this.#options;
    const every = `compared every ${Math.ceil(this.#interval_ms / 1_000)} s`;
    const reasons: string[] = gate.refusal === null ? [] : [gate.refusal];
    if (watch_set.refused > 0) {
      const limit =
        'the limit of inotify watches is reached (fs.inotify.max_user_watches, max_user_instances)';
      reasons.push(
        `${limit}: ${watch_set.refused} directories are ${every}, among them ${watch_set.example()}`,
      );
    }
    if (scanner.remote.size > 0) {
      const kinds = [...new Set(scanner.remote.values())].join(', ');
      reasons.push(`changes made elsewhere on ${kinds} are not signalled: ${every}`);
    }
    if (tables.size > 0) {
      const [[path, name] = ['', '']] = tables;
      reasons.push(
        `${tables.size} directories are tables of the kernel (${name} at ${JSON.stringify(path)}): not watched`,
      );
    }
    if (scanner.hidden.size > 0)
      reasons.push(`${scanner.hidden.size} directories cannot be read, or not all in them`);
    return reasons.length > 0 ? reasons.join('; ') : null;
  }
}
