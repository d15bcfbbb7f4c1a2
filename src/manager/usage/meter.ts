import type { Clock } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { Counter } from '../../base/metrics.ts';
import type { Job } from '../../base/schedule.ts';
import type { WindowType } from '../../contract/usage.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Transaction } from '../database/database.ts';
import type { Lease, Metering } from '../sandboxes/ports.ts';
import { hourlySpans, type Span, startOfHour } from './spans.ts';
import type { ClosedSpan, LeaseRow, UsageStore } from './usage-store.ts';

/** At most 10 s of running are not yet committed when a manager dies. */
const BEAT_MS = 5_000;
const LOOKS_AT_ONCE = 32;
const RUNTIME: WindowType = 'sandbox.runtime_mib_milliseconds';

/** What metering needs. */
export interface MeterParts {
  store: UsageStore;
  runtime: Runtime;
  clock: Clock;
  region_id: string;
  cluster_id: string;
}

/** Usage of some type that is over, such as the bytes that a node's network runtime has counted. */
export type Usage = Omit<ClosedSpan, 'window_id'>;

/**
 * Meters leases: MiB × ms from the commit that begins one to the commit that ends it, in windows that are closed at
 * every full hour, and written in the transaction that closes them. Source: contract section 7, "Usage".
 */
export class Meter implements Metering {
  readonly windows = new Counter(['window_type']);
  readonly #parts: MeterParts;

  constructor(parts: MeterParts) {
    this.#parts = parts;
  }

  async began(tx: Transaction, { sandbox_id, team_id, memory_mib }: Lease, at_ms: number): Promise<void> {
    await this.ended(tx, sandbox_id, at_ms);
    const times = { started_ms: at_ms, counted_until_ms: at_ms, heartbeat_ms: at_ms };
    await this.#parts.store.open(tx, { sandbox_id, team_id, memory_mib, ...times });
  }

  async changed(tx: Transaction, lease: Lease, at_ms: number): Promise<void> {
    await this.began(tx, lease, at_ms);
  }

  async ended(tx: Transaction, sandbox_id: string, at_ms: number | 'last_seen'): Promise<void> {
    const lease = await this.#parts.store.take(tx, sandbox_id);
    if (!lease) return;
    await this.#close(tx, lease, at_ms === 'last_seen' ? lease.heartbeat_ms : at_ms);
  }

  /** Adds windows of whatever was used: those of leases, and bytes that others have counted. */
  async record(tx: Transaction, usages: readonly Usage[]): Promise<void> {
    const { store, clock, region_id, cluster_id } = this.#parts;
    const recorded_at_ms = clock.wallMs();
    const spans = usages.map((usage) => ({ ...usage, window_id: newId('win_', recorded_at_ms) }));
    await store.record(tx, spans, { region_id, cluster_id, recorded_at_ms });
    for (const { window_type } of spans) this.windows.add([window_type]);
  }

  /** Leases of sandboxes that began while nothing was metered begin now. */
  async begin(): Promise<void> {
    const { store, clock } = this.#parts;
    const now_ms = clock.wallMs();
    for (const row of await store.unmetered()) {
      await store.write((tx) => this.began(tx, { ...row, cpu_millis: 0 }, now_ms));
    }
  }

  /** Commits what was seen to run, and closes the windows of hours that are over. */
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

  /** Whoever has died since the last look is not counted: its lease ends when it was last seen. */
  async #beat(): Promise<void> {
    const { store, runtime, clock } = this.#parts;
    const now_ms = clock.wallMs();
    const seen: string[] = [];
    const looked = inParallel(await store.leases(), LOOKS_AT_ONCE, async ({ sandbox_id }) => {
      if (await runtime.isAlive(sandbox_id)) seen.push(sandbox_id);
    });
    // One that cannot be looked at costs the others nothing.
    const trouble = await looked.then(
      () => null,
      (error: unknown) => error,
    );
    await store.beat(seen, now_ms);
    if (trouble !== null) throw trouble;
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
      ...{ start_ms, end_ms, sandbox_id, team_id },
      window_type: RUNTIME,
      value: memory_mib * (end_ms - start_ms),
    });
    await this.record(tx, hourlySpans(counted_until_ms, until_ms).map(usageOf));
  }
}
