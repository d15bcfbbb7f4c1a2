import { newId } from '../../base/ids.ts';
import { Counter } from '../../base/metrics.ts';
import type { Job } from '../../base/schedule.ts';
import type { WindowType } from '../../contract/words.ts';
import type { Transaction } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { Lease, LeaseMetering } from '../sandboxes/ports.ts';
import { hourlySpans, type Span, startOfHour } from './spans.ts';
import type { ClosedSpan, LeaseRow, UsageStore } from './usage-store.ts';

/** How often the windows of past hours are looked for, and how soon again while there are more. */
const CLOSE_MS = 5_000;
const CLOSE_ON_MS = 50;
/** Leases whose windows one transaction closes. */
const CLOSED_AT_ONCE = 100;
/** What a lease holds, each metered in windows of a type of its own. */
const METERED = [
  ['sandbox.runtime_mib_milliseconds', 'memory_mib'],
  ['sandbox.runtime_millicpu_milliseconds', 'cpu_millis'],
] as const satisfies [WindowType, keyof LeaseRow][];

/** The dependencies of `UsageMeter`. */
export interface UsageMeterParts {
  store: UsageStore;
  clock: DatabaseClock;
  region_id: string;
  cluster_id: string;
}

/** A measured span of usage that has ended, such as the bytes that a node's network runtime has counted. */
export type UsageSpan = Omit<ClosedSpan, 'window_id'> & Partial<Pick<ClosedSpan, 'window_id'>>;

/**
 * Meters leases: MiB × ms, and thousandths of a core × ms, from the commit that begins a lease to the commit that ends it. Windows are closed at every
 * full hour, and written in the transaction that closes them. Source: contract section 7, "Usage".
 */
export class UsageMeter implements LeaseMetering {
  /** Windows closed by this replica, by type. */
  readonly windows = new Counter('usage_windows_total', 'Usage windows that this replica has closed.', [
    'window_type',
  ]);
  readonly #parts: UsageMeterParts;

  constructor(parts: UsageMeterParts) {
    this.#parts = parts;
  }

  /** Begins a lease at `at_ms` (wall time); ends one that is still open. Errors: `unavailable`. */
  async began(tx: Transaction, lease: Omit<Lease, 'disk_mib'>, at_ms: number): Promise<void> {
    const { sandbox_id, team_id, memory_mib, cpu_millis } = lease;
    await this.ended(tx, sandbox_id, at_ms);
    const times = { started_ms: at_ms, counted_until_ms: at_ms, last_seen_ms: null };
    await this.#parts.store.open(tx, { sandbox_id, team_id, memory_mib, cpu_millis, ...times });
  }

  /** Closes the span of a lease and continues it with another amount of memory. Errors: `unavailable`. */
  async changed(tx: Transaction, lease: Lease, at_ms: number): Promise<void> {
    await this.began(tx, lease, at_ms);
  }

  /** Ends a lease at `at_ms`, or when it was last seen; does nothing without a lease. Errors: `unavailable`. */
  async ended(tx: Transaction, sandbox_id: string, at_ms: number | 'last_seen'): Promise<void> {
    const { store } = this.#parts;
    const lease = await store.take(tx, sandbox_id);
    if (!lease) return;
    const { started_ms, last_seen_ms } = lease;
    const seen = async () => last_seen_ms ?? Math.max(started_ms, await store.lastLook(tx));
    await this.record(tx, spansOf(lease, at_ms === 'last_seen' ? await seen() : at_ms));
  }

  /** Adds closed windows of any type: those of leases, and bytes counted elsewhere. Errors: `unavailable`. */
  async record(tx: Transaction, spans: readonly UsageSpan[]): Promise<void> {
    const { store, clock, region_id, cluster_id } = this.#parts;
    const recorded_at_ms = clock.wallMs();
    const closed = spans.map((span) => ({ window_id: newId('win_', recorded_at_ms), ...span }));
    await store.record(tx, closed, { region_id, cluster_id, recorded_at_ms });
    for (const { window_type } of closed) this.windows.add([window_type]);
  }

  /** Begins the leases of sandboxes that were started while metering was off. Errors: `unavailable`. */
  async begin(): Promise<void> {
    const { store, clock } = this.#parts;
    const now_ms = clock.wallMs();
    for (const row of await store.unmetered()) {
      await store.write((tx) => this.began(tx, row, now_ms));
    }
  }

  /** See `LeaseMetering`. A lease that ends at an unknown time ends at the last look that saw its sandbox. Errors: `unavailable`. */
  async watched(at_ms: number, unseen: ReadonlySet<string>): Promise<void> {
    await this.#parts.store.write((tx) => this.#parts.store.looked(tx, at_ms, unseen));
  }

  /** The job that closes the windows of past hours, some at a time. */
  job(): Job {
    const { store } = this.#parts;
    return {
      name: 'metering',
      run: async () => {
        const hour_ms = startOfHour(await store.lastLook());
        const closed = await store.write(async (tx) => {
          const leases = await store.takeDue(tx, hour_ms, CLOSED_AT_ONCE);
          await this.record(
            tx,
            leases.flatMap((lease) => spansOf(lease, lease.until_ms)),
          );
          return leases.length;
        });
        return closed === CLOSED_AT_ONCE ? CLOSE_ON_MS : CLOSE_MS;
      },
    };
  }
}

/** The usage of a lease from where its windows end. */
function spansOf({ counted_until_ms, ...lease }: LeaseRow, until_ms: number): UsageSpan[] {
  const { sandbox_id, team_id } = lease;
  return hourlySpans(counted_until_ms, until_ms).flatMap(({ start_ms, end_ms }: Span) =>
    METERED.map(([window_type, held]) => {
      return { start_ms, end_ms, sandbox_id, team_id, window_type, value: lease[held] * (end_ms - start_ms) };
    }),
  );
}
