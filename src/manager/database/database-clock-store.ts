import { type RawBuilder, sql } from 'kysely';
import type { Boot, Clock, Timer } from '../../base/clock.ts';
import { type KeptClock, keptClock, sinceKept } from '../../base/kept-clock.ts';
import { CLOCK_BACK_PACE, CLOCK_SLEW } from '../../contract/defaults.ts';
import type { Database } from './database.ts';
import { SettingStore } from './setting-store.ts';

/** The setting in which a database without a clock keeps the time. */
const KEPT = 'clock';
/** How often it is kept. */
const KEEP_MS = 60_000;
/** Times are whole ms: one that is so far from another is the same. */
const ROUNDING_MS = 1;
/** How far the boot clock, read in hundredths of a second, may be from the monotonic one without a suspend in between. */
const BOOT_ROUNDING_MS = 50;

/** The time of one statement, in SQL. */
export interface Moment {
  /** The database's own time, in ms. */
  readonly now: RawBuilder<number>;
  /** So many ms later. */
  in(delay_ms: number): RawBuilder<number>;
}

/**
 * The one time of a manager, which all its replicas share: the database's. Whatever is kept and compared with what another
 * replica has kept is in this time; nothing else of the manager reads the machine's wall clock.
 *
 * PostgreSQL: its server's clock, measured, and advanced between measures by the machine's boot clock. SQLite has none: the
 * time is kept in the database and goes on with the boot clock, towards the wall clock at 500 ppm at most; after a reboot it
 * is the wall clock's. It never goes back, neither here nor, on SQLite, over a restart. Source: contract section 7, "Time".
 */
export class DatabaseClock implements Clock {
  readonly #database: Database;
  readonly #machine: Clock;
  readonly #settings: SettingStore;
  /** The time at a moment of the boot clock, and how far it then was from what it is to be. */
  #from = { boot_ms: 0, ms: 0, correction_ms: 0 };
  #is_measured = false;
  #measuring: Promise<void> | null = null;
  #kept_boot_ms = Number.NEGATIVE_INFINITY;
  #boot_lead_ms = Number.NEGATIVE_INFINITY;

  /** The clock of a database, measured. Errors: `unavailable`. */
  static async open(database: Database, machine: Clock): Promise<DatabaseClock> {
    const clock = new DatabaseClock(database, machine);
    await (database.time ? clock.#follow(database.time) : clock.#goOn());
    // Without an answer the next measure tells.
    database.onConnect(() => void clock.measure().catch(() => {}));
    return clock;
  }

  private constructor(database: Database, machine: Clock) {
    this.#database = database;
    this.#machine = machine;
    this.#settings = new SettingStore(database.db);
  }

  /** Wall time in whole ms since the epoch, as the database has it. Never less than before. */
  wallMs(): number {
    return Math.round(this.#at(this.#bootMs()));
  }

  /** See `Clock`. */
  monotonicMs(): number {
    return this.#machine.monotonicMs();
  }

  /** See `Clock`. */
  boot(): Boot {
    return this.#machine.boot();
  }

  /** See `Clock`. */
  after(delay_ms: number, run: () => void): Timer {
    return this.#machine.after(delay_ms, run);
  }

  /** The time of one statement, in SQL: PostgreSQL's own, whatever this replica believes. */
  moment(): Moment {
    const now = this.#database.time ?? sql<number>`${this.wallMs()}`;
    return { now, in: (delay_ms) => sql<number>`${now} + cast(${delay_ms} as bigint)` };
  }

  /** How far the machine's wall clock is ahead of the database's time, in ms; negative: behind. */
  get machine_ahead_ms(): number {
    return this.#machine.wallMs() - (this.#database.time ? this.#target() : this.wallMs());
  }

  /** How far this clock is still ahead of a database whose own clock went back, in ms. */
  get ahead_ms(): number {
    return this.#database.time ? this.#at(this.#bootMs()) - this.#target() : 0;
  }

  /** Measures the database's time; where it has none, keeps it. Errors: `unavailable`. */
  measure(): Promise<void> {
    this.#measuring ??= this.#measure().finally(() => {
      this.#measuring = null;
    });
    return this.#measuring;
  }

  async #measure(): Promise<void> {
    if (this.#database.time) return this.#follow(this.#database.time);
    await this.#goOn();
    await this.#keep();
  }

  async #follow(time: RawBuilder<number>): Promise<void> {
    const sent_ms = this.#bootMs();
    const { rows } = await sql<{ now_ms: number }>`select ${time} as now_ms`.execute(this.#database.db);
    const [row] = rows;
    if (!row) return;
    const trip_ms = this.#bootMs() - sent_ms;
    // The database read its clock somewhere in the trip: a slow one says nothing against what a fast one has said.
    const away_ms = this.#target() - row.now_ms;
    if (this.#is_measured && away_ms >= -ROUNDING_MS && away_ms <= trip_ms + ROUNDING_MS) return;
    const now_ms = row.now_ms + trip_ms / 2;
    this.#reach(now_ms);
    this.#approach(now_ms);
  }

  async #goOn(): Promise<void> {
    const found = await this.#settings.find(KEPT);
    const kept: KeptClock | null = found === null ? null : JSON.parse(found);
    const wall_ms = this.#machine.wallMs();
    const since_ms = kept && sinceKept(kept, this.#machine);
    const kept_ms = kept && since_ms !== null ? kept.clock_ms + since_ms : null;
    // Another process on the same file may be ahead.
    if (kept_ms !== null && kept_ms > this.#at(this.#bootMs()) + BOOT_ROUNDING_MS) this.#reach(kept_ms);
    else if (!this.#is_measured) this.#reach(Math.max(wall_ms, kept ? leastAfter(kept, wall_ms) : 0));
    this.#approach(wall_ms);
  }

  async #keep(): Promise<void> {
    const now_ms = this.#bootMs();
    if (now_ms - this.#kept_boot_ms < KEEP_MS) return;
    // Not again at once where it fails, such as on a full disk.
    this.#kept_boot_ms = now_ms;
    await this.#settings.set(KEPT, JSON.stringify(keptClock(this.#machine, this.wallMs())));
  }

  /** Goes forward at once to what the time is now, if it is behind. */
  #reach(ms: number): void {
    const boot_ms = this.#bootMs();
    // Nobody has seen this clock before it was measured.
    this.#from = { boot_ms, ms: this.#is_measured ? Math.max(this.#at(boot_ms), ms) : ms, correction_ms: 0 };
    this.#is_measured = true;
  }

  /** Goes from now on towards what the time is to be. */
  #approach(to_ms: number): void {
    const boot_ms = this.#bootMs();
    const ms = this.#at(boot_ms);
    this.#from = { boot_ms, ms, correction_ms: to_ms - ms };
  }

  #at(boot_ms: number): number {
    const { ms, correction_ms } = this.#from;
    const since_ms = boot_ms - this.#from.boot_ms;
    const most_ms = since_ms * (this.#database.time ? CLOCK_BACK_PACE : CLOCK_SLEW);
    return ms + since_ms + Math.max(-most_ms, Math.min(most_ms, correction_ms));
  }

  #target(): number {
    const { boot_ms, ms, correction_ms } = this.#from;
    return ms + correction_ms + this.#bootMs() - boot_ms;
  }

  /** The machine's boot clock, as fine as its monotonic one, which stops in suspend. */
  #bootMs(): number {
    const now_ms = this.#machine.monotonicMs();
    const lead_ms = this.#machine.boot().ms - now_ms;
    if (Math.abs(lead_ms - this.#boot_lead_ms) > BOOT_ROUNDING_MS) this.#boot_lead_ms = lead_ms;
    return now_ms + this.#boot_lead_ms;
  }
}

/** The least that a clock may say in another boot: what it went on after it was kept is lost, as far as the wall clock knows. */
function leastAfter({ clock_ms, clock_wall_ms }: KeptClock, wall_ms: number): number {
  const by_wall_ms = wall_ms - clock_wall_ms;
  return clock_ms + (by_wall_ms < 0 ? KEEP_MS : Math.min(KEEP_MS, by_wall_ms));
}
