import { expect, it, onTestFinished, vi } from 'vitest';
import type { UsageWindow } from '../../../src/contract/usage.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { Meter } from '../../../src/manager/usage/meter.ts';
import { UsageStore } from '../../../src/manager/usage/usage-store.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import type { RuntimeState } from '../../../src/runtime/runtime.ts';
import { race } from '../../support/manager/cursor-race.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

vi.setConfig({ testTimeout: 120_000 });

const TEAM = 'team_1';
const HOUR_MS = 3_600_000;
const PATH = '/api/v1/usage/windows';
const START_MS = Date.UTC(2026, 0, 1, 10, 20);
const LEASE = { sandbox_id: 'sbx_1', team_id: TEAM, memory_mib: 256, cpu_millis: 100 };

/** A runtime of which a test says what has become of a sandbox. */
class ToldRuntime extends NoRuntime {
  state: RuntimeState = 'running';

  override async inspect(): Promise<RuntimeState> {
    return this.state;
  }

  override async isAlive(): Promise<boolean> {
    return this.state !== 'lost' && this.state !== 'absent';
  }
}

async function metered(url: string) {
  const database = await openDatabase(url);
  onTestFinished(() => database.close());
  const store = new UsageStore(database);
  const clock = new ManualClock(START_MS);
  const runtime = new ToldRuntime();
  const parts = { store, runtime, clock, region_id: 'eu', cluster_id: 'local' };
  const meter = new Meter(parts);
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
  it('closes a window at every full hour and at the end, each MiB × ms', async () => {
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

  it('counts what was seen to run before its manager died, once, and nothing that was not', async () => {
    const { store, clock, runtime, meter, parts, job, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    for (let i = 0; i < 12; i++) {
      expect(await job.run()).toBeLessThanOrEqual(10_000);
      await clock.advance(5_000);
    }
    // Whoever starts afterwards, hours later, finds the sandbox gone.
    runtime.state = 'lost';
    await clock.advance(5 * HOUR_MS);
    const after = new Meter(parts);
    await after.job().run();
    expect(await windows()).toEqual([]);
    await store.write((tx) => after.ended(tx, LEASE.sandbox_id, 'last_seen'));
    expect(await windows()).toEqual([[0, 55 / 60, (256 * 55) / 60]]);
  });

  it('goes on over a restart where the sandbox does, also when two replicas look', async () => {
    const { store, clock, meter, parts, windows } = await metered(await fresh());
    await store.write((tx) => meter.began(tx, LEASE, clock.wallMs()));
    await clock.advance(3 * HOUR_MS);
    for (const each of [new Meter(parts), new Meter(parts)]) await each.job().run();
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

  it('adds what is late as one more window and leaves the closed one as it is', async () => {
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

async function used(client: Client): Promise<UsageWindow[]> {
  return (await client.get(PATH)).data.windows;
}

describeOnStores('usage windows', (fresh) => {
  it('are closed at pause, memory change and deletion, and not while paused', async () => {
    const manager = await startManager(await fresh(), { options: { region: 'eu-1' } });
    const client = await manager.client(TEAM, 'sandboxes:write', 'usage:read');
    const first = await client.claim({ resources: { memory: '256Mi' } });
    expect(await used(client)).toEqual([]);
    await client.call('PUT', `/api/v1/sandboxes/${first}`, { config: { resources: { memory: '512Mi' } } });
    await client.post(`/api/v1/sandboxes/${first}/pause`);
    await client.call('PUT', `/api/v1/sandboxes/${first}`, { config: { resources: { memory: '128Mi' } } });
    await client.post(`/api/v1/sandboxes/${first}/resume`);
    await client.call('DELETE', `/api/v1/sandboxes/${first}`);
    const windows = await used(client);
    const length_ms = (each: UsageWindow) => Date.parse(each.window_end) - Date.parse(each.window_start);
    expect(windows.map((each) => each.value / length_ms(each))).toEqual([256, 512, 128]);
    expect(windows[0]).toEqual({
      window_id: expect.stringMatching(/^win_/),
      ...{ region_id: 'eu-1', cluster_id: 'local', window_type: 'sandbox.runtime_mib_milliseconds' },
      ...{ subject_type: 'sandbox', subject_id: first, sandbox_id: first, unit: 'mib_milliseconds' },
      ...{
        window_start: expect.any(String),
        window_end: windows[1]?.window_start,
        value: expect.any(Number),
      },
      recorded_at: expect.any(String),
    });
  });

  it('are read in pages by a cursor that is never empty, each team its own', async () => {
    const manager = await startManager(await fresh());
    const client = await manager.client(TEAM, 'sandboxes:write', 'usage:read');
    const other = await manager.client('team_2', 'usage:read');
    const start = (await client.get(PATH)).data;
    expect(start).toEqual({ windows: [], next_cursor: expect.stringMatching(/./) });
    for (let i = 0; i < 3; i++) {
      await client.call('DELETE', `/api/v1/sandboxes/${await client.claim()}`);
    }
    const pages: string[] = [];
    let cursor: string = start.next_cursor;
    for (let i = 0; i < 4; i++) {
      const { data } = await client.get(`${PATH}?limit=1&cursor=${cursor}`);
      pages.push(...data.windows.map(({ window_id }: UsageWindow) => window_id));
      if (i === 3) expect(data.next_cursor).toBe(cursor);
      cursor = data.next_cursor;
    }
    expect(new Set(pages).size).toBe(3);
    expect(pages).toEqual((await used(client)).map(({ window_id }) => window_id));
    expect(await used(other)).toEqual([]);
    expect((await client.get(`${PATH}?window_type=sandbox.egress_bytes`)).data.windows).toEqual([]);
    expect((await client.get(`${PATH}?limit=1000000000`)).data.windows).toHaveLength(3);
    expect((await client.get(`${PATH}?limit=1e9`)).data.windows).toHaveLength(3);
    const bad: [string, string][] = [
      ['limit=0', 'limit'],
      ['limit=-1', 'limit'],
      ['limit=1.5', 'limit'],
      ['limit=many', 'limit'],
      ['limit=', 'limit'],
      ['window_type=cpu', 'window_type'],
      ['cursor=', 'cursor'],
      [`cursor=${cursor.slice(0, -1)}`, 'cursor'],
      [`cursor=${cursor.startsWith('A') ? 'B' : 'A'}${cursor.slice(1)}`, 'cursor'],
      ['colour=red', 'colour'],
    ];
    for (const [query, field] of bad) {
      const { status, error } = await client.get(`${PATH}?${query}`);
      expect({ query, status, field: error?.details?.field }).toEqual({ query, status: 400, field });
    }
    expect((await other.get(`${PATH}?cursor=${cursor}`)).error?.details?.field).toBe('cursor');
    const without = await manager.client(TEAM, 'sandboxes:write', 'quota:read');
    expect((await without.get(PATH)).status).toBe(403);
  });

  it('are unavailable with metering off, and begin where it is switched on again', async () => {
    const url = await fresh();
    const folder = scratchFolder();
    const off = await startManager(url, { folder, options: { metering: 'off' } });
    const client = await off.client(TEAM, 'sandboxes:write', 'usage:read');
    await client.claim();
    const { status, headers, error } = await client.get(PATH);
    expect([status, error?.code]).toEqual([503, 'unavailable']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    await off.stop();
    const on = await startManager(url, { folder });
    const again = await on.client(TEAM, 'sandboxes:write', 'usage:read');
    const [sandbox] = (await again.get('/api/v1/sandboxes')).data.sandboxes;
    await again.call('DELETE', `/api/v1/sandboxes/${sandbox.id}`);
    const [window] = await used(again);
    expect(Date.parse(window?.window_start ?? '')).toBeGreaterThan(Date.parse(sandbox.claimed_at));
  });

  it('are read once each, none missed, none twice, while eight replicas write', async () => {
    const result = await race(await fresh(), 8, 1_000);
    expect(result).toMatchObject({ read: 8_000, missed: 0, repeated: 0 });
    expect(result.pages_meanwhile).toBeGreaterThan(10);
  });
});
