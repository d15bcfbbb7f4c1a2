import { inParallel } from '../../base/in-parallel.ts';
import type { Metric } from '../../base/metrics.ts';
import type { Job } from '../../base/schedule.ts';
import type { NetworkUsage } from '../../contract/sandboxes.ts';
import type { SandboxNetworks } from '../../runtime/networks/sandbox-networks.ts';
import type { Transaction } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { TrafficMetering } from '../sandboxes/ports.ts';
import type { UsageMeter, UsageSpan } from './meter.ts';
import type { NetworkPositionRow, NetworkPositionStore, WatchedSandbox } from './network-position-store.ts';
import { latestOf, NetworkTotals, NO_TRAFFIC } from './network-totals.ts';
import { byteSpans, HOUR_MS, startOfHour } from './spans.ts';

/** How old the usage in lists may become. */
const LOOK_MS = 5_000;
const LOOKS_AT_ONCE = 32;
const ROWS_AT_ONCE = 100;

/** The dependencies of `NetworkMeter`. */
export interface NetworkMeterParts {
  store: NetworkPositionStore;
  networks: SandboxNetworks;
  clock: DatabaseClock;
  /** Writes windows; null with `--metering off`. */
  meter: UsageMeter | null;
}

/**
 * Keeps what the kernel has counted of each sandbox's traffic, and puts all of it into windows: what was last seen and how
 * much of it is in windows change in the transaction that writes them, so that nothing is lost or counted twice however a
 * manager ends. Source: contract section 7, "Usage".
 */
export class NetworkMeter implements TrafficMetering {
  readonly #parts: NetworkMeterParts;
  readonly #totals = new NetworkTotals();

  constructor(parts: NetworkMeterParts) {
    this.#parts = parts;
  }

  /** Begins counting a sandbox at 0; one that was paused goes on from its position. Errors: `unavailable`. */
  async began(
    tx: Transaction,
    { sandbox_id, team_id }: { sandbox_id: string; team_id: string },
    at_ms: number,
  ): Promise<void> {
    const { store, networks, meter } = this.#parts;
    if (networks.state().mode !== 'metered') return;
    const counted_until_ms = meter ? at_ms : null;
    const seen = { usage: JSON.stringify(NO_TRAFFIC), seen_ms: at_ms };
    const first = { sandbox_id, team_id, ...seen, ...countedAt(NO_TRAFFIC), counted_until_ms };
    if (await store.insert(tx, first)) return;
    const row = await store.lock(tx, sandbox_id);
    if (!row) return;
    const is_counted = row.counted_until_ms !== null;
    await store.update(tx, { ...row, ...(is_counted ? {} : countedAt(usageOf(row))), counted_until_ms });
  }

  /** Closes the windows of a sandbox that was paused or has ended, up to the given count. Errors: `unavailable`. */
  async closed(
    tx: Transaction,
    sandbox_id: string,
    usage: NetworkUsage | null,
    at_ms: number,
  ): Promise<void> {
    const row = await this.#parts.store.lock(tx, sandbox_id);
    if (row) await this.#count(tx, row, usage ?? usageOf(row), { seen_ms: at_ms, until_ms: at_ms });
  }

  /** The count now, or the one last seen if the sandbox is not on this machine; null if nothing is counted. Errors: `unavailable`. */
  async usage(sandbox_id: string): Promise<NetworkUsage | null> {
    const { networks } = this.#parts;
    // Trouble with networks is logged by the jobs; the record has what was last seen.
    const now = await networks.usage(sandbox_id).catch(() => null);
    const stored = (await this.lastSeen([sandbox_id])).get(sandbox_id) ?? null;
    return now && stored ? latestOf(now, stored) : (now ?? stored);
  }

  /** The counts last seen, at most 10 s old for sandboxes that run, of those that are counted. Errors: `unavailable`. */
  async lastSeen(sandbox_ids: string[]): Promise<Map<string, NetworkUsage>> {
    const rows = await this.#parts.store.find(sandbox_ids);
    return new Map(rows.map((row) => [row.sandbox_id, usageOf(row)]));
  }

  /** The sums over this node's sandboxes. */
  metrics(): Metric[] {
    return this.#totals.metrics();
  }

  /** The job that stores the counts of running sandboxes where they have changed, and closes windows at every full hour. */
  job(): Job {
    return {
      name: 'traffic',
      run: async () => {
        const { networks, clock } = this.#parts;
        if (networks.state().mode === 'metered') await this.#look();
        const now_ms = clock.wallMs();
        return Math.min(LOOK_MS, startOfHour(now_ms) + HOUR_MS - now_ms);
      },
    };
  }

  async #look(): Promise<void> {
    const { store, networks, clock } = this.#parts;
    const now_ms = clock.wallMs();
    const changed: (WatchedSandbox & { usage: NetworkUsage })[] = [];
    const running = new Set<string>();
    const failures: unknown[] = [];
    for await (const sandboxes of store.running()) {
      for (const { sandbox_id } of sandboxes) running.add(sandbox_id);
      const looked = inParallel(sandboxes, LOOKS_AT_ONCE, async (sandbox) => {
        const usage = await networks.usage(sandbox.sandbox_id);
        if (usage && this.#isDue(sandbox.position, usage, now_ms)) changed.push({ ...sandbox, usage });
      });
      // A sandbox that cannot be read does not affect the others.
      await looked.catch((error: unknown) => failures.push(error));
    }
    this.#totals.keepOnly(running);
    // Always in the same order, so that two managers cannot wait for each other.
    changed.sort((a, b) => (a.sandbox_id < b.sandbox_id ? -1 : 1));
    for (let i = 0; i < changed.length; i += ROWS_AT_ONCE) {
      await store.write(async (tx) => {
        for (const each of changed.slice(i, i + ROWS_AT_ONCE)) await this.#see(tx, each, now_ms);
      });
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Whether a count must be stored, or bytes of a past hour are in no window yet. */
  #isDue(row: NetworkPositionRow | null, usage: NetworkUsage, now_ms: number): boolean {
    if (!row || row.usage !== JSON.stringify(latestOf(usageOf(row), usage))) return true;
    if (!this.#parts.meter) return false;
    if (row.counted_until_ms === null) return true;
    const is_counted =
      usage.egress.passed_bytes === row.egress_counted && usage.ingress.passed_bytes === row.ingress_counted;
    return !is_counted && row.counted_until_ms < startOfHour(now_ms);
  }

  async #see(
    tx: Transaction,
    { sandbox_id, team_id, usage }: WatchedSandbox & { usage: NetworkUsage },
    now_ms: number,
  ): Promise<void> {
    const { store, meter } = this.#parts;
    const row = await store.lock(tx, sandbox_id);
    if (row) {
      const hour_ms = startOfHour(now_ms);
      const is_over = row.counted_until_ms !== null && row.counted_until_ms < hour_ms;
      return this.#count(tx, row, usage, { seen_ms: now_ms, until_ms: is_over ? hour_ms : null });
    }
    // Nobody knows when its traffic began: what has passed is in no window.
    const seen = { usage: JSON.stringify(usage), seen_ms: now_ms };
    const counted = { ...countedAt(usage), counted_until_ms: meter ? now_ms : null };
    await store.insert(tx, { sandbox_id, team_id, ...seen, ...counted });
  }

  /** Stores a count, and closes the windows up to `until_ms` unless it is null. */
  async #count(
    tx: Transaction,
    row: NetworkPositionRow,
    usage: NetworkUsage,
    { seen_ms, until_ms }: { seen_ms: number; until_ms: number | null },
  ): Promise<void> {
    const { store, meter } = this.#parts;
    const before = usageOf(row);
    const now = latestOf(before, usage);
    this.#totals.add(row.sandbox_id, before, now);
    const seen = { ...row, usage: JSON.stringify(now), seen_ms };
    if (!meter) return store.update(tx, { ...seen, counted_until_ms: null });
    if (row.counted_until_ms === null)
      return store.update(tx, { ...seen, ...countedAt(now), counted_until_ms: seen_ms });
    if (until_ms === null) return store.update(tx, seen);
    // What is in windows stays there, also where the time was read before a replica was paused.
    const counted_until_ms = Math.max(until_ms, row.counted_until_ms);
    await meter.record(tx, windowsOf(row, row.counted_until_ms, now, counted_until_ms));
    await store.update(tx, { ...seen, ...countedAt(now), counted_until_ms });
  }
}

function windowsOf(
  row: NetworkPositionRow,
  from_ms: number,
  now: NetworkUsage,
  until_ms: number,
): UsageSpan[] {
  const { sandbox_id, team_id, seen_ms } = row;
  const before = usageOf(row);
  const counted = { egress: row.egress_counted, ingress: row.ingress_counted };
  return (['egress', 'ingress'] as const).flatMap((direction) =>
    byteSpans(
      { value: counted[direction], at_ms: from_ms },
      { value: before[direction].passed_bytes, at_ms: seen_ms },
      { value: now[direction].passed_bytes, at_ms: until_ms },
    ).map((span) => ({ ...span, sandbox_id, team_id, window_type: `sandbox.${direction}_bytes` as const })),
  );
}

function usageOf(row: NetworkPositionRow): NetworkUsage {
  return JSON.parse(row.usage);
}

function countedAt({ egress, ingress }: NetworkUsage) {
  return { egress_counted: egress.passed_bytes, ingress_counted: ingress.passed_bytes };
}
