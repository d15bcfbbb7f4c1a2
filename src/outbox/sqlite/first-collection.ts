import type { Clock } from '../../base/clock.ts';
import { collectGarbage, keepsCode } from '../../base/engine/garbage.ts';

/** From the thread's start until what that leaves behind is collected. */
const SETTLE_MS = 1_500;
/** With nothing to do for this long, a collection most likely holds up nobody. */
const QUIET_MS = 100;
/** With more rows than this in that time the thread is busy: the collection would take code away that it goes on using. */
const BUSY_ROWS = 1_000;

/**
 * Collects once what the start of the writer's thread leaves behind, 5 MB, in a moment in which it has nothing to do. The
 * engine by itself lets it lie: what flows through is small. Not in a thread that is busy from the beginning.
 */
export class FirstCollection {
  readonly #clock: Clock;
  readonly #collect: () => void;
  readonly #settled_ms: number;
  #rows = 0;
  #worked_ms = 0;
  #is_scheduled = false;
  #is_over: boolean;

  constructor(clock: Clock, collect = collectGarbage, flags = process.execArgv) {
    this.#clock = clock;
    this.#collect = collect;
    this.#settled_ms = clock.monotonicMs() + SETTLE_MS;
    this.#is_over = keepsCode(flags);
  }

  /** Notes that the thread wrote so many rows. */
  noteRows(rows: number): void {
    if (this.#is_over) return;
    this.#rows += rows;
    this.#is_over = this.#rows > BUSY_ROWS;
    this.#worked_ms = this.#clock.monotonicMs();
    if (!this.#is_scheduled) this.#schedule();
  }

  #schedule(): void {
    this.#is_scheduled = true;
    const quiet_ms = Math.max(this.#settled_ms, this.#worked_ms + QUIET_MS);
    this.#clock.after(quiet_ms - this.#clock.monotonicMs(), () => this.#collectIfQuiet());
  }

  #collectIfQuiet(): void {
    this.#is_scheduled = false;
    if (this.#is_over) return;
    if (this.#clock.monotonicMs() < this.#worked_ms + QUIET_MS) {
      this.#schedule();
      return;
    }
    this.#is_over = true;
    this.#collect();
  }
}
