import type { Clock } from '../../base/clock.ts';
import { collectGarbage, keepsCode } from '../../base/engine/garbage.ts';

/** From the thread's start until what that leaves behind may be collected. */
const SETTLE_MS = 1_500;
/** With nothing to do for this long, a collection most likely holds up nobody. */
const QUIET_MS = 100;
const INTERVAL_MS = 60_000;

/**
 * Collects the garbage of the writer's thread in moments in which it has nothing to do: once it has started, and later
 * once a minute at most, after work alone. The engine by itself lets it lie, 5 MB, because what flows through is small.
 */
export class QuietCollection {
  readonly #clock: Clock;
  readonly #collect: () => void;
  readonly #is_off: boolean;
  #worked_ms = 0;
  #next_ms: number;
  #is_scheduled = false;

  constructor(clock: Clock, collect = collectGarbage, flags = process.execArgv) {
    this.#clock = clock;
    this.#collect = collect;
    this.#is_off = keepsCode(flags);
    this.#next_ms = clock.monotonicMs() + SETTLE_MS;
  }

  /** Notes that the thread works. */
  noteWork(): void {
    this.#worked_ms = this.#clock.monotonicMs();
    if (!this.#is_scheduled) this.#schedule();
  }

  #schedule(): void {
    if (this.#is_off) return;
    this.#is_scheduled = true;
    const quiet_ms = Math.max(this.#next_ms, this.#worked_ms + QUIET_MS);
    this.#clock.after(quiet_ms - this.#clock.monotonicMs(), () => this.#collectIfQuiet());
  }

  #collectIfQuiet(): void {
    this.#is_scheduled = false;
    const now_ms = this.#clock.monotonicMs();
    if (now_ms < this.#worked_ms + QUIET_MS) {
      this.#schedule();
      return;
    }
    this.#next_ms = now_ms + INTERVAL_MS;
    this.#collect();
  }
}
