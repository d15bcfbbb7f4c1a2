import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { UsageMeter } from '../../../src/manager/usage/meter.ts';
import { UsageStore } from '../../../src/manager/usage/usage-store.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import type { Liveness, RuntimeState } from '../../../src/runtime/runtime.ts';
import { manualTime } from '../../support/manager/manual-time.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeOnStores } from '../../support/stores.ts';

const TEAM = 'team_1';
const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 0, 1, 10, 20);
const LEASE = { sandbox_id: 'sbx_1', team_id: TEAM, memory_mib: 256, cpu_millis: 100, disk_mib: 128 };

/** A runtime of which a test says what has become of a sandbox. */
class ToldRuntime extends NoRuntime {
  state: RuntimeState = 'running';

  override async inspect(): Promise<RuntimeState> {
    return this.state;
  }

  override async liveness(): Promise<Liveness> {
    return this.state === 'lost' ? 'lost' : this.state === 'absent' ? 'unknown' : 'alive';
  }
}

async function metered(url: string) {
  const database = await openDatabase(url);
  onTestFinished(() => database.close());
  const store = new UsageStore(database);
  const clock = new ManualClock(START_MS);
  const runtime = new ToldRuntime();
  const time = await manualTime(database, clock);
  const parts = { store, runtime, clock: time, region_id: 'eu', cluster_id: 'local' };
  const meter = new UsageMeter(parts);
  return {
    ...{ store, clock, runtime, meter, parts },
    job: meter.job(),
    /** From the start, in minutes, with the value in MiB × minutes. */
    async windows() {
      const rows = await store.page(TEAM, { xid: 0, seq: 0 }, { limit: 1_000, window_type: undefined });
      const minutes = (ms: number) => (ms - START_MS) / 60_000;
      return rows.map((row) => [
        minutes(row.window_start_ms),
        minutes(row.window_end_ms),
        row.value / 60_000,
      ]);
    },
  };
}

describeOnStores('metering', (fresh) => {
  it('closes a window at every full hour and at the end, in MiB × ms', async () => {
    const { store, clock, meter, job, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    await job.run();
    expect(await windows()).toEqual([]);
    await clock.advance(HOUR_MS * 1.5);
    await job.run();
    expect(await windows()).toEqual([[0, 40, 256 * 40]]);
    await job.run();
    await clock.advance(HOUR_MS);
    await store.write((tx) => meter.ended(tx, LEASE.sandbox_id, clock.wallMs()));
    expect(await windows()).toEqual([
      [0, 40, 256 * 40],
      [40, 100, 256 * 60],
      [100, 150, 256 * 50],
    ]);
    await store.write((tx) => meter.ended(tx, LEASE.sandbox_id, clock.wallMs()));
    await job.run();
    expect(await windows()).toHaveLength(3);
  });

  it('begins a window where the memory changes', async () => {
    const { store, clock, meter, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    await clock.advance(60_000);
    await store.write((tx) => meter.changed(tx, { ...LEASE, memory_mib: 512 }, clock.wallMs()));
    await clock.advance(60_000);
    await store.write((tx) => meter.ended(tx, LEASE.sandbox_id, clock.wallMs()));
    expect(await windows()).toEqual([
      [0, 1, 256],
      [1, 2, 512],
    ]);
  });

  it('counts what was seen running before its manager died, once, and nothing more', async () => {
    const { store, clock, runtime, meter, parts, job, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    for (let i = 0; i < 12; i++) {
      expect(await job.run()).toBeLessThanOrEqual(10_000);
      await clock.advance(5_000);
    }
    // Whoever starts afterwards, hours later, finds the sandbox gone.
    runtime.state = 'lost';
    await clock.advance(5 * HOUR_MS);
    const after = new UsageMeter(parts);
    await after.job().run();
    expect(await windows()).toEqual([]);
    await store.write((tx) => after.ended(tx, LEASE.sandbox_id, 'last_seen'));
    expect(await windows()).toEqual([[0, 55 / 60, (256 * 55) / 60]]);
  });

  it('continues over a restart of the manager, also with two replicas', async () => {
    const { store, clock, meter, parts, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    await clock.advance(3 * HOUR_MS);
    for (const each of [new UsageMeter(parts), new UsageMeter(parts)]) await each.job().run();
    expect(await windows()).toEqual([
      [0, 40, 256 * 40],
      [40, 100, 256 * 60],
      [100, 160, 256 * 60],
    ]);
  });

  it('counts nothing twice and nothing below zero when the clock goes back', async () => {
    const { store, clock, meter, job, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    await clock.advance(HOUR_MS);
    await job.run();
    clock.step(-2 * HOUR_MS);
    await job.run();
    await store.write((tx) => meter.ended(tx, LEASE.sandbox_id, clock.wallMs()));
    expect(await windows()).toEqual([[0, 40, 256 * 40]]);
  });

  it('adds late usage as another window and leaves the closed one as it is', async () => {
    const { store, meter } = await metered(await fresh());
    const window_type = 'sandbox.egress_bytes' as const;
    const usage = { team_id: TEAM, sandbox_id: 'sbx_1', window_type, start_ms: 0, end_ms: HOUR_MS };
    const page = () => store.page(TEAM, { xid: 0, seq: 0 }, { limit: 10, window_type });
    await store.write((tx) => meter.record(tx, [{ ...usage, value: 1_000 }]));
    const [closed] = await page();
    await store.write((tx) => meter.record(tx, [{ ...usage, value: 24 }]));
    const both = await page();
    expect(both[0]).toEqual(closed);
    expect(both.map(({ value, unit }) => [value, unit])).toEqual([
      [1_000, 'bytes'],
      [24, 'bytes'],
    ]);
    expect(new Set(both.map(({ window_id }) => window_id)).size).toBe(2);
  });
});
