import { expect, it, onTestFinished } from 'vitest';
import type { WindowType } from '../../../src/contract/words.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { UsageMeter } from '../../../src/manager/usage/meter.ts';
import { UsageStore } from '../../../src/manager/usage/usage-store.ts';
import { manualTime } from '../../support/manager/manual-time.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeOnStores } from '../../support/stores.ts';

const TEAM = 'team_1';
const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 0, 1, 10, 20);
const LEASE = { sandbox_id: 'sbx_1', team_id: TEAM, memory_mib: 256, cpu_millis: 100, disk_mib: 128 };

async function metered(url: string) {
  const database = await openDatabase(url);
  onTestFinished(() => database.close());
  const store = new UsageStore(database);
  const clock = new ManualClock(START_MS);
  const time = await manualTime(database, clock);
  const parts = { store, clock: time, region_id: 'eu', cluster_id: 'local' };
  const meter = new UsageMeter(parts);
  const seen = { is_lost: false };
  return {
    ...{ store, clock, seen, meter, parts },
    /** A look at all sandboxes, and the job after it. */
    async turn(looking = meter) {
      await looking.watched(time.wallMs(), new Set(seen.is_lost ? [LEASE.sandbox_id] : []));
      return looking.job().run();
    },
    /** Those of a type, of memory by default: from the start, in minutes, with the value in MiB × minutes. */
    async windows(window_type: WindowType = 'sandbox.runtime_mib_milliseconds') {
      const rows = await store.page(TEAM, { xid: 0, seq: 0 }, { limit: 1_000, window_type });
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
    const { store, clock, meter, turn, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    await turn();
    expect(await windows()).toEqual([]);
    await clock.advance(HOUR_MS * 1.5);
    await turn();
    expect(await windows()).toEqual([[0, 40, 256 * 40]]);
    await turn();
    await clock.advance(HOUR_MS);
    await store.write((tx) => meter.ended(tx, LEASE.sandbox_id, clock.wallMs()));
    expect(await windows()).toEqual([
      [0, 40, 256 * 40],
      [40, 100, 256 * 60],
      [100, 150, 256 * 50],
    ]);
    await store.write((tx) => meter.ended(tx, LEASE.sandbox_id, clock.wallMs()));
    await turn();
    expect(await windows()).toHaveLength(3);
  });

  it('meters the cores of a lease as its memory: windows of the same spans, in the same transaction', async () => {
    const { store, clock, meter, turn, windows } = await metered(await fresh());
    const cpu = () => windows('sandbox.runtime_millicpu_milliseconds');
    expect(await cpu()).toEqual([]);
    await store.write((tx) => meter.began(tx, { ...LEASE, cpu_millis: 1_500 }, clock.wallMs()));
    await clock.advance(HOUR_MS);
    await turn();
    const taken_back = store.write(async (tx) => {
      await meter.ended(tx, LEASE.sandbox_id, clock.wallMs());
      throw new Error('taken back');
    });
    await expect(taken_back).rejects.toThrow('taken back');
    expect([await cpu(), (await windows()).length]).toEqual([[[0, 40, 1_500 * 40]], 1]);
    await store.write((tx) => meter.ended(tx, LEASE.sandbox_id, clock.wallMs()));
    expect(await cpu()).toEqual([
      [0, 40, 1_500 * 40],
      [40, 60, 1_500 * 20],
    ]);
    expect((await windows()).map(([start, end]) => [start, end])).toEqual([
      [0, 40],
      [40, 60],
    ]);
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
    const { store, clock, seen, meter, parts, turn, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    for (let i = 0; i < 12; i++) {
      expect(await turn()).toBeLessThanOrEqual(10_000);
      await clock.advance(5_000);
    }
    // Whoever starts afterwards, hours later, finds the sandbox gone.
    seen.is_lost = true;
    await clock.advance(5 * HOUR_MS);
    const after = new UsageMeter(parts);
    await turn(after);
    expect(await windows()).toEqual([]);
    await store.write((tx) => after.ended(tx, LEASE.sandbox_id, 'last_seen'));
    expect(await windows()).toEqual([[0, 55 / 60, (256 * 55) / 60]]);
  });

  it('continues over a restart of the manager, also with two replicas', async () => {
    const { store, clock, meter, parts, turn, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    await clock.advance(3 * HOUR_MS);
    for (const each of [new UsageMeter(parts), new UsageMeter(parts)]) await turn(each);
    expect(await windows()).toEqual([
      [0, 40, 256 * 40],
      [40, 100, 256 * 60],
      [100, 160, 256 * 60],
    ]);
  });

  it('counts nothing twice and nothing below zero when the clock goes back', async () => {
    const { store, clock, meter, turn, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    await clock.advance(HOUR_MS);
    await turn();
    clock.step(-2 * HOUR_MS);
    await turn();
    await store.write((tx) => meter.ended(tx, LEASE.sandbox_id, clock.wallMs()));
    expect(await windows()).toEqual([[0, 40, 256 * 40]]);
  });

  it('ends where a sandbox was last seen, also one that is seen again, and one that no look has seen', async () => {
    const { store, clock, seen, meter, turn, windows } = await metered(await fresh());
    const ends = () => store.write((tx) => meter.ended(tx, LEASE.sandbox_id, 'last_seen'));
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    for (const is_lost of [false, true, true, false, true, true]) {
      seen.is_lost = is_lost;
      await clock.advance(60_000);
      await turn();
    }
    await ends();
    expect(await windows()).toEqual([[0, 4, 256 * 4]]);
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    await clock.advance(60_000);
    await ends();
    expect(await windows()).toHaveLength(1);
  });

  it('closes the hour of every sandbox, a page of them at a time, and of none twice', async () => {
    const { store, clock, seen, meter, turn, windows } = await metered(await fresh());
    for (let i = 0; i < 250; i++) {
      const lease = { ...LEASE, sandbox_id: `sbx_${i}` };
      await store.write((tx) => meter.began(tx, lease, clock.wallMs()));
    }
    await clock.advance(30 * 60_000);
    await turn();
    // One has died in the hour before, and is in no look after that.
    seen.is_lost = true;
    await clock.advance(30 * 60_000);
    for (let i = 0; i < 4; i++) await turn();
    const closed = await windows();
    expect(closed).toHaveLength(249);
    expect(new Set(closed.map(String))).toEqual(new Set(['0,40,10240']));
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
