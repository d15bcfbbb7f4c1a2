import { newId } from '../../base/ids.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { Counter } from '../../base/metrics.ts';
import type { Job } from '../../base/schedule.ts';
import type { WindowType } from '../../contract/usage.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Transaction } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { Lease, LeaseMetering } from '../sandboxes/ports.ts';
import { hourlySpans, type Span, startOfHour } from './spans.ts';
import type { ClosedSpan, LeaseRow, UsageStore } from './usage-store.ts';

/** Interval of heartbeats: at most 10 s of running time are lost if a manager dies. */
const BEAT_MS = 5_000;
const CHECKS_AT_ONCE = 32;
const RUNTIME: WindowType = 'sandbox.runtime_mib_milliseconds';

/** The dependencies of `UsageMeter`. */
export interface UsageMeterParts {
  store: UsageStore;
  runtime: Runtime;
  clock: DatabaseClock;
  region_id: string;
  cluster_id: string;
}

/** A measured span of usage that has ended, such as the bytes that a node's network runtime has counted. */
export type UsageSpan = Omit<ClosedSpan, 'window_id'> & Partial<Pick<ClosedSpan, 'window_id'>>;

/**
 * Meters leases: MiB × ms from the commit that begins a lease to the commit that ends it. Windows are closed at every
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
  async began(tx: Transaction, { sandbox_id, team_id, memory_mib }: Lease, at_ms: number): Promise<void> {
    await this.ended(tx, sandbox_id, at_ms);
    const times = { started_ms: at_ms, counted_until_ms: at_ms, heartbeat_ms: at_ms };
    await this.#parts.store.open(tx, { sandbox_id, team_id, memory_mib, ...times });
  }

  /** Closes the span of a lease and continues it with another amount of memory. Errors: `unavailable`. */
  async changed(tx: Transaction, lease: Lease, at_ms: number): Promise<void> {
    await this.began(tx, lease, at_ms);
  }

  /** Ends a lease at `at_ms`, or at its last heartbeat; does nothing without a lease. Errors: `unavailable`. */
  async ended(tx: Transaction, sandbox_id: string, at_ms: number | 'last_seen'): Promise<void> {
    const lease = await this.#parts.store.take(tx, sandbox_id);
    if (!lease) return;
    await this.#close(tx, lease, at_ms === 'last_seen' ? lease.heartbeat_ms : at_ms);
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
      await store.write((tx) => this.began(tx, { ...row, cpu_millis: 0, disk_mib: null }, now_ms));
    }
  }

  /** The job that commits heartbeats and closes the windows of past hours. */
  job(): Job {
    return {
      name: 'metering',
      run: async () => {
        await this.#beat();
        await this.#closeHours();
        return BEAT_MS;
      },
    };
  }

  /** Records a heartbeat for every sandbox that runs. One that has died gets none, and its lease ends at the last one. */
  async #beat(): Promise<void> {
    const { store, runtime, clock } = this.#parts;
    const now_ms = clock.wallMs();
    const seen: string[] = [];
    const checked = inParallel(await store.leases(), CHECKS_AT_ONCE, async ({ sandbox_id }) => {
      if ((await runtime.liveness(sandbox_id)) === 'alive') seen.push(sandbox_id);
    });
    // A sandbox that cannot be checked does not affect the others.
    const failure = await checked.then(
      () => null,
      (error: unknown) => error,
    );
    await store.beat(seen, now_ms);
    if (failure !== null) throw failure;
  }

  async #closeHours(): Promise<void> {
    const { store, clock } = this.#parts;
    for (const lease of await store.due(startOfHour(clock.wallMs()))) {
      const until_ms = startOfHour(lease.heartbeat_ms);
      if (until_ms <= lease.counted_until_ms) continue;
      await store.write(async (tx) => {
        if (await store.count(tx, lease, until_ms)) await this.#close(tx, lease, until_ms);
      });
    }
  }

  async #close(tx: Transaction, { counted_until_ms, ...lease }: LeaseRow, until_ms: number): Promise<void> {
    const { sandbox_id, team_id, memory_mib } = lease;
    const usageOf = ({ start_ms, end_ms }: Span) => ({
      start_ms,
      end_ms,
      sandbox_id,
      team_id,
      window_type: RUNTIME,
      value: memory_mib * (end_ms - start_ms),
    });
    await this.record(tx, hourlySpans(counted_until_ms, until_ms).map(usageOf));
  }
}
