import type { Job } from '../../base/schedule.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';
import type { UseStore } from './use-store.ts';

/** How often this replica looks for what is to be noted. */
const LOOK_MS = 300;
/** How often the use of a sandbox is noted in the database at most, unless its idle time is short. */
const NOTED_EVERY_MS = 5_000;
/** A short idle time is noted so many times. */
const NOTED_TIMES = 3;

interface Entry {
  /** 0: off, as far as this replica knows. */
  idle_ms: number;
  /** Calls in progress. */
  open: number;
  /** When it was last used, the last use in the database, and when that was written; all in monotonic time. */
  used_ms: number;
  noted_ms: number;
  written_ms: number;
}

/** A call that counts as use. */
export interface CallInProgress {
  /** False: the sandbox does not run, or is being paused. */
  is_noted: boolean;
  /** Call it when the call has ended. Idempotent. */
  end: () => void;
}

/**
 * The uses of sandboxes by calls through this replica. A call counts from its beginning until its end. The database holds
 * when each sandbox is to be paused; it is written at most every 5 s for each sandbox in use (three times in a shorter idle
 * time), and before a call begins that would otherwise come too late. Source: contract section 7, `idle_ttl`.
 */
export class Uses implements Job {
  readonly name = 'uses';
  readonly #clock: DatabaseClock;
  readonly #store: UseStore;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: DatabaseClock, store: UseStore) {
    this.#clock = clock;
    this.#store = store;
  }

  /** Whether a call to a sandbox is in progress here. */
  isInUse(sandbox_id: string): boolean {
    return (this.#entries.get(sandbox_id)?.open ?? 0) > 0;
  }

  /** Begins a call to a sandbox, given its row as just read: from now on it is not idle. */
  async begin(row: ManagedSandboxRow): Promise<CallInProgress> {
    const { sandbox_id } = row;
    const entry = this.#entryOf(row);
    const now_ms = this.#clock.monotonicMs();
    entry.open += 1;
    entry.used_ms = now_ms;
    const end = this.#endOf(sandbox_id, entry);
    if (!needsNote(row, this.#clock.wallMs())) return { is_noted: row.status === 'running', end };
    try {
      const is_noted = await this.#store.restart(sandbox_id, this.#clock.moment());
      if (is_noted) this.#noted(entry, now_ms);
      return { is_noted, end };
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Notes what is due; resolves with the delay until the next look. */
  readonly run = async (): Promise<number> => {
    const now_ms = this.#clock.monotonicMs();
    await this.#note((entry) => now_ms - entry.written_ms >= notedEveryMs(entry.idle_ms));
    return LOOK_MS;
  };

  /** Notes all uses, before this replica stops. */
  async flush(): Promise<void> {
    await this.#note(() => true);
  }

  async #note(isDue: (entry: Entry) => boolean): Promise<void> {
    const now_ms = this.#clock.monotonicMs();
    const due = [...this.#entries].filter(
      ([, entry]) => (entry.open > 0 || entry.used_ms > entry.noted_ms) && isDue(entry),
    );
    if (due.length === 0) return;
    const uses = due.map(([sandbox_id, { open, used_ms }]) => {
      const at_ms = open > 0 ? now_ms : used_ms;
      return { sandbox_id, at_ms, ago_ms: Math.round(now_ms - at_ms) };
    });
    const idle_ttls = await this.#store.note(uses, this.#clock.moment());
    for (const [i, [sandbox_id, entry]] of due.entries()) {
      entry.idle_ms = (idle_ttls.get(sandbox_id) ?? 0) * 1000;
      this.#noted(entry, uses[i]?.at_ms ?? now_ms);
      this.#forget(sandbox_id, entry);
    }
  }

  #noted(entry: Entry, used_ms: number): void {
    entry.noted_ms = used_ms;
    entry.written_ms = this.#clock.monotonicMs();
  }

  #entryOf({ sandbox_id, idle_ttl_s }: ManagedSandboxRow): Entry {
    const known = this.#entries.get(sandbox_id);
    // Noted already, as far as the row says: a first use is noted when its time has come.
    const written_ms = this.#clock.monotonicMs();
    const never = { used_ms: Number.NEGATIVE_INFINITY, noted_ms: Number.NEGATIVE_INFINITY };
    const entry = known ?? { idle_ms: 0, open: 0, ...never, written_ms };
    entry.idle_ms = idle_ttl_s * 1000;
    this.#entries.set(sandbox_id, entry);
    return entry;
  }

  #endOf(sandbox_id: string, entry: Entry): () => void {
    let is_open = true;
    return () => {
      if (!is_open) return;
      is_open = false;
      entry.open -= 1;
      entry.used_ms = this.#clock.monotonicMs();
      this.#forget(sandbox_id, entry);
    };
  }

  #forget(sandbox_id: string, { open, idle_ms, used_ms, noted_ms }: Entry): void {
    if (open === 0 && (idle_ms === 0 || used_ms <= noted_ms)) this.#entries.delete(sandbox_id);
  }
}

function notedEveryMs(idle_ms: number): number {
  return idle_ms === 0 ? NOTED_EVERY_MS : Math.min(NOTED_EVERY_MS, idle_ms / NOTED_TIMES);
}

/** Whether a running sandbox may be paused before its use is noted in its turn. */
function needsNote({ status, idle_ttl_s, idle_expires_at_ms }: ManagedSandboxRow, now_ms: number): boolean {
  if (status !== 'running' || idle_ttl_s === 0) return false;
  return (idle_expires_at_ms ?? 0) - now_ms < 2 * notedEveryMs(idle_ttl_s * 1000);
}
