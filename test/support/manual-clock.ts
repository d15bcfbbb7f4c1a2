import type { Boot, Clock, Timer } from '../../src/base/clock.ts';

let boots = 0;

/** A clock that moves only when the test says so. */
export class ManualClock implements Clock {
  #wall_ms: number;
  #monotonic_ms = 0;
  #timers: { at_ms: number; run: () => void }[] = [];

  readonly #boot: Boot;

  /** `boot`: the machine's boot, and how long ago it was at the clock's start; each clock has one of its own. */
  constructor(wall_ms = Date.UTC(2026, 0, 1), boot: Boot = { id: `boot-${++boots}`, ms: 3_600_000 }) {
    this.#wall_ms = wall_ms;
    this.#boot = boot;
  }

  boot(): Boot {
    return { ...this.#boot, ms: this.#boot.ms + this.#monotonic_ms };
  }

  wallMs(): number {
    return this.#wall_ms;
  }

  monotonicMs(): number {
    return this.#monotonic_ms;
  }

  after(delay_ms: number, run: () => void): Timer {
    const timer = { at_ms: this.#monotonic_ms + Math.max(0, delay_ms), run };
    this.#timers.push(timer);
    return { cancel: () => (this.#timers = this.#timers.filter((other) => other !== timer)) };
  }

  /** How many timers run. */
  get timers(): number {
    return this.#timers.length;
  }

  /** Moves the wall clock alone, as an administrator or NTP does. */
  step(wall_ms: number): void {
    this.#wall_ms += wall_ms;
  }

  /** Lets time pass in which this program is stopped: what is due meanwhile runs late, with the next `advance`. */
  freeze(for_ms: number): void {
    this.#wall_ms += for_ms;
    this.#monotonic_ms += for_ms;
  }

  /** Lets time pass: what was begun is given its turns, due timers run in order, and what they start too. */
  async advance(by_ms: number): Promise<void> {
    const end_ms = this.#monotonic_ms + by_ms;
    await turns();
    for (;;) {
      const next = this.#timers.filter((timer) => timer.at_ms <= end_ms).sort((a, b) => a.at_ms - b.at_ms)[0];
      // After a freeze they are late.
      const to_ms = Math.max(this.#monotonic_ms, next?.at_ms ?? end_ms);
      this.#wall_ms += to_ms - this.#monotonic_ms;
      this.#monotonic_ms = to_ms;
      if (!next) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      next.run();
      await turns();
    }
    await turns();
  }
}

/** Lets everything that waits only for the event loop go on. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}
