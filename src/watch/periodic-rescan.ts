import type { Clock, Timer } from '../base/clock.ts';
import type { DirectoryScanner } from './directory-scanner.ts';
import { RESCAN_MIN_MS, RESCAN_SHARE } from './index/limits.ts';
import type { RemoteMounts } from './remote-mounts.ts';
import type { RootGate } from './root-gate.ts';
import type { WatchSet } from './signals/watch-set.ts';

interface PeriodicRescanOptions {
  clock: Clock;
  watch_set: WatchSet;
  scanner: DirectoryScanner;
  mounts: RemoteMounts;
  /** See `Prober.pseudo`. */
  pseudo: ReadonlyMap<string, string>;
  gate: RootGate;
  /** Called when the next rescan is due. */
  onDue: () => void;
}

/** Schedules rescans of what the kernel's signals do not cover, and describes what that is. */
export class PeriodicRescan {
  readonly #options: PeriodicRescanOptions;
  #timer: Timer | null = null;
  #interval_ms = RESCAN_MIN_MS;
  #busy_before_ms = 0;

  constructor(options: PeriodicRescanOptions) {
    this.#options = options;
  }

  /** Starts the timer of the next rescan, if anything needs one. Call it whenever the engine comes to rest. */
  update(): void {
    const { clock, watch_set, scanner, mounts } = this.#options;
    if (this.#timer || (watch_set.refused === 0 && mounts.roots.size === 0)) return;
    const cost_ms = scanner.busy_ms - this.#busy_before_ms;
    this.#interval_ms = Math.max(RESCAN_MIN_MS, cost_ms * RESCAN_SHARE);
    this.#timer = clock.after(this.#interval_ms, () => {
      this.#timer = null;
      this.#busy_before_ms = scanner.busy_ms;
      this.#options.onDue();
    });
  }

  /** Cancels the next rescan. */
  stop(): void {
    this.#timer?.cancel();
  }

  /** What is rescanned at intervals or not seen at all, as a message; null if watches cover everything. */
  degraded(): string | null {
    const { watch_set, scanner, mounts, pseudo, gate } = this.#options;
    const every = `rescanned every ${Math.ceil(this.#interval_ms / 1_000)} s`;
    const reasons: string[] = gate.refusal === null ? [] : [gate.refusal];
    if (watch_set.refused > 0) {
      const limit =
        'the limit of inotify watches is reached (fs.inotify.max_user_watches, max_user_instances)';
      reasons.push(
        `${limit}: ${watch_set.refused} directories are ${every}, among them ${watch_set.example()}`,
      );
    }
    if (mounts.roots.size > 0) {
      const kinds = [...new Set(mounts.roots.values())].join(', ');
      reasons.push(`the kernel does not report remote changes on ${kinds}: ${every}`);
    }
    for (const mount of mounts.aside()) {
      reasons.push(`${mount} changes too much or has too many names: not watched for 10 minutes`);
    }
    if (pseudo.size > 0) {
      const [[path, name] = ['', '']] = pseudo;
      reasons.push(
        `${pseudo.size} directories are on pseudo file systems (${name} at ${JSON.stringify(path)}) and are not watched`,
      );
    }
    if (scanner.hidden.size > 0)
      reasons.push(`${scanner.hidden.size} directories cannot be read, or contain entries that cannot`);
    return reasons.length > 0 ? reasons.join('; ') : null;
  }
}
