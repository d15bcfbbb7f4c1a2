import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { NetworkUsage } from '../../../src/contract/sandboxes.ts';
import type { Database, Transaction } from '../../../src/manager/database/database.ts';
import type { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { SandboxStore } from '../../../src/manager/sandboxes/sandbox-store.ts';
import { UsageMeter, type UsageSpan } from '../../../src/manager/usage/meter.ts';
import { NetworkMeter } from '../../../src/manager/usage/network-meter.ts';
import {
  type NetworkPositionRow,
  NetworkPositionStore,
} from '../../../src/manager/usage/network-position-store.ts';
import { startOfHour } from '../../../src/manager/usage/spans.ts';
import { UsageStore } from '../../../src/manager/usage/usage-store.ts';
import { manualTime } from '../../support/manager/manual-time.ts';
import { opened } from '../../support/manager/outbox.ts';
import { rowOf } from '../../support/manager/sandbox-rows.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeOnStores } from '../../support/stores.ts';

const HOUR_MS = 3_600_000;

/** A sandbox whose manager can be killed at any of its statements; its traffic and the database stay. */
class Scene {
  readonly sandbox_id: string;
  readonly clock: ManualClock;
  readonly time: DatabaseClock;
  readonly runtime = new ScriptedRuntime();
  readonly database: Database;
  /** How many statements the manager still makes; a statement's effect is lost with its transaction. */
  left = Number.POSITIVE_INFINITY;
  meter: NetworkMeter;

  constructor(database: Database, sandbox_id: string, clock: ManualClock, time: DatabaseClock) {
    this.clock = clock;
    this.time = time;
    this.database = database;
    this.sandbox_id = sandbox_id;
    this.runtime.networks.mode = { mode: 'metered', reason: null, block_all: 'network_namespace' };
    this.meter = this.manager();
  }

  /** A manager that has just started. */
  manager({ is_metering = true } = {}): NetworkMeter {
    const step = () => {
      if (this.left-- <= 0) throw new Error('killed');
    };
    class Store extends NetworkPositionStore {
      override async insert(tx: Transaction, row: NetworkPositionRow) {
        step();
        return super.insert(tx, row);
      }
      override async update(tx: Transaction, row: NetworkPositionRow) {
        step();
        await super.update(tx, row);
        step();
      }
    }
    class Meter extends UsageMeter {
      override async record(tx: Transaction, spans: readonly UsageSpan[]) {
        step();
        await super.record(tx, spans);
      }
    }
    const { time: clock, database } = this;
    const { networks } = this.runtime;
    const places = { region_id: 'test', cluster_id: 'local' };
    const meter = is_metering ? new Meter({ store: new UsageStore(database), clock, ...places }) : null;
    return new NetworkMeter({ store: new Store(database), networks, clock, meter });
  }

  /** Does something, with a new manager for each that is killed on the way. */
  async surely(kill_after: number, work: () => Promise<unknown>): Promise<void> {
    this.left = kill_after;
    await work().catch(() => {
      this.left = Number.POSITIVE_INFINITY;
      this.meter = this.manager();
      return work();
    });
    this.left = Number.POSITIVE_INFINITY;
  }

  write(work: (tx: Transaction) => Promise<void>): Promise<void> {
    return this.database.db.transaction().execute(work);
  }

  begin(): Promise<void> {
    const named = { sandbox_id: this.sandbox_id, team_id: 'team_1' };
    return this.write((tx) => this.meter.began(tx, named, this.clock.wallMs()));
  }

  async close(usage?: NetworkUsage | null): Promise<void> {
    const read = usage === undefined ? await this.runtime.networks.usage(this.sandbox_id) : usage;
    await this.write((tx) => this.meter.closed(tx, this.sandbox_id, read, this.clock.wallMs()));
  }

  async look(): Promise<void> {
    await this.meter.job().run();
  }

  async windows() {
    const { db } = this.database;
    const rows = db.selectFrom('usage_windows').selectAll().where('sandbox_id', '=', this.sandbox_id);
    return (await rows.orderBy('seq').execute()).map(
      ({ window_type, window_start_ms, window_end_ms, value }) => ({
        ...{ window_type, value, start_ms: window_start_ms, end_ms: window_end_ms },
      }),
    );
  }

  async sums(): Promise<[number, number]> {
    const windows = await this.windows();
    const sum = (type: string) =>
      windows.filter(({ window_type }) => window_type === type).reduce((all, { value }) => all + value, 0);
    return [sum('sandbox.egress_bytes'), sum('sandbox.ingress_bytes')];
  }
}

describeOnStores('the bytes of a sandbox', (fresh) => {
  let sandboxes = 0;
  async function sceneOn(database: Database): Promise<Scene> {
    const clock = new ManualClock(Date.UTC(2026, 0, 1, 10, 20));
    const time = await manualTime(database, clock);
    const scene = new Scene(database, `sbx_${++sandboxes}`, clock, time);
    const store = new SandboxStore(database);
    await store.write((tx) => store.insert(tx, rowOf(scene.sandbox_id)));
    return scene;
  }

  it('are in windows to the byte, each once, wherever managers are killed', async () => {
    const database = await opened(await fresh());
    const bytes = fc.nat({ max: 1_000_000 });
    const step = fc.oneof(
      fc.record({ do: fc.constant('pass' as const), egress: bytes, ingress: bytes }),
      fc.record({ do: fc.constant('wait' as const), ms: fc.nat({ max: 2 * HOUR_MS }) }),
      fc.record({ do: fc.constantFrom('look', 'pause', 'resume', 'lose') }),
    );
    const script = fc.array(fc.tuple(step, fc.integer({ min: 0, max: 6 })), { maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(script, async (steps) => {
        const scene = await sceneOn(database);
        const { sandbox_id, clock, runtime } = scene;
        await scene.begin();
        for (const [next, kill_after] of steps) {
          if ('egress' in next) runtime.networks.pass(sandbox_id, next.egress, next.ingress);
          else if ('ms' in next) clock.freeze(next.ms);
          else if (next.do === 'look') await scene.surely(kill_after, () => scene.look());
          else if (next.do === 'pause') await scene.surely(kill_after, () => scene.close());
          else if (next.do === 'resume') await scene.surely(kill_after, () => scene.begin());
          // By a manager that does not see its network.
          else await scene.surely(kill_after, () => scene.close(null));
        }
        await scene.surely(1, () => scene.close());
        const final = runtime.networks.counts.get(sandbox_id);
        const expected = [final?.egress.passed_bytes ?? 0, final?.ingress.passed_bytes ?? 0];
        expect(await scene.sums()).toEqual(expected);
        const windows = await scene.windows();
        await scene.close();
        await scene.close(null);
        expect(await scene.windows()).toEqual(windows);
        for (const { value, start_ms, end_ms } of windows) {
          expect(value).toBeGreaterThan(0);
          expect(startOfHour(start_ms)).toBe(startOfHour(end_ms - 1));
        }
        const { db } = database;
        await db
          .updateTable('sandboxes')
          .set({ status: 'paused' })
          .where('sandbox_id', '=', sandbox_id)
          .execute();
      }),
      { numRuns: 25 },
    );
  });

  it('are closed at the full hour, with a look right at it', async () => {
    const scene = await sceneOn(await opened(await fresh()));
    const { sandbox_id, clock, runtime, meter } = scene;
    const started_ms = clock.wallMs();
    const hour_ms = startOfHour(started_ms) + HOUR_MS;
    await scene.begin();
    runtime.networks.pass(sandbox_id, 10, 0);
    expect(await meter.job().run()).toBe(5_000);
    expect(await scene.windows()).toEqual([]);
    clock.freeze(hour_ms - started_ms - 1_000);
    expect(await meter.job().run()).toBe(1_000);
    clock.freeze(1_000);
    runtime.networks.pass(sandbox_id, 5, 1);
    await scene.look();
    const until = { start_ms: started_ms, end_ms: hour_ms };
    const windows = [
      { window_type: 'sandbox.egress_bytes', value: 15, ...until },
      { window_type: 'sandbox.ingress_bytes', value: 1, ...until },
    ];
    expect(await scene.windows()).toEqual(windows);
    // An hour without traffic has no window, and nothing is written for it.
    clock.freeze(HOUR_MS);
    await scene.look();
    expect(await scene.windows()).toEqual(windows);
  });

  it('that pass while metering is off are in no window, but in the record', async () => {
    const database = await opened(await fresh());
    const scene = await sceneOn(database);
    const { sandbox_id, runtime } = scene;
    await scene.begin();
    runtime.networks.pass(sandbox_id, 1, 0);
    await scene.look();
    await new NetworkPositionStore(database).stopCounting();
    scene.meter = scene.manager({ is_metering: false });
    runtime.networks.pass(sandbox_id, 10, 0);
    await scene.look();
    await scene.close();
    expect((await scene.meter.lastSeen([sandbox_id])).get(sandbox_id)?.egress.passed_bytes).toBe(11);
    scene.meter = scene.manager();
    await scene.begin();
    runtime.networks.pass(sandbox_id, 100, 0);
    await scene.close();
    expect(await scene.sums()).toEqual([100, 0]);
  });

  it('are the last ones seen where its network is gone, and are never taken back', async () => {
    const scene = await sceneOn(await opened(await fresh()));
    const { sandbox_id, runtime, meter } = scene;
    await scene.begin();
    runtime.networks.pass(sandbox_id, 50, 7);
    await scene.look();
    runtime.networks.counts.delete(sandbox_id);
    await scene.look();
    expect((await meter.usage(sandbox_id))?.egress.passed_bytes).toBe(50);
    await scene.close(null);
    expect(await scene.sums()).toEqual([50, 7]);
  });
});
