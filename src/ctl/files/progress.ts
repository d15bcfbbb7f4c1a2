import type { Clock } from '../../base/clock.ts';
import type { Output } from '../terminal/output.ts';
import { cut, printable } from '../terminal/printable.ts';
import { duration, size } from '../terminal/quantity.ts';

const REDRAW_MS = 100;
const BAR_COLUMNS = 20;

/** The progress of one transfer on a terminal: a bar, the rate, and the time left. Writes nothing elsewhere. */
export class Progress {
  readonly #name: string;
  readonly #total_bytes: number | null;
  readonly #err: Output;
  readonly #clock: Clock;
  readonly #started_ms: number;
  #drawn_ms = Number.NEGATIVE_INFINITY;
  #done_bytes = 0;

  /** `total_bytes` is null where it is not known. */
  constructor(name: string, total_bytes: number | null, err: Output, clock: Clock) {
    this.#name = name;
    this.#total_bytes = total_bytes;
    this.#err = err;
    this.#clock = clock;
    this.#started_ms = clock.monotonicMs();
  }

  /** Counts bytes that were sent or received. */
  add(bytes: number): void {
    this.#done_bytes += bytes;
    const now_ms = this.#clock.monotonicMs();
    if (this.#err.columns === null || now_ms - this.#drawn_ms < REDRAW_MS) return;
    this.#drawn_ms = now_ms;
    void this.#draw('');
  }

  /** Leaves the last state on the screen. */
  async end(): Promise<void> {
    if (this.#err.columns !== null) await this.#draw('\n');
  }

  async #draw(end: string): Promise<void> {
    const text = progressText(
      printable(this.#name),
      this.#done_bytes,
      this.#total_bytes,
      this.#clock.monotonicMs() - this.#started_ms,
    );
    await this.#err.write(`\r${cut(text, (this.#err.columns ?? 80) - 1)}\x1b[K${end}`).catch(() => {});
  }
}

/** One line: name, bar and share, bytes, rate, and the time left. */
export function progressText(
  name: string,
  done_bytes: number,
  total_bytes: number | null,
  elapsed_ms: number,
): string {
  const rate = elapsed_ms > 0 ? (done_bytes / elapsed_ms) * 1_000 : 0;
  const parts = [size(done_bytes), `${size(Math.round(rate))}/s`];
  if (total_bytes === null) return [name, ...parts].join('  ');
  const share = total_bytes === 0 ? 1 : Math.min(done_bytes / total_bytes, 1);
  const filled = Math.floor(share * BAR_COLUMNS);
  const bar = `[${'#'.repeat(filled)}${' '.repeat(BAR_COLUMNS - filled)}] ${Math.floor(share * 100)}%`;
  const left_ms = rate > 0 ? ((total_bytes - done_bytes) / rate) * 1_000 : 0;
  return [name, bar, ...parts, ...(share < 1 && rate > 0 ? [`${duration(left_ms)} left`] : [])].join('  ');
}
