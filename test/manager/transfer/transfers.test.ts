import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import type { Sample } from '../../../src/base/metrics.ts';
import type { Database, Transaction } from '../../../src/manager/database/database.ts';
import type { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { SandboxStore } from '../../../src/manager/sandboxes/sandbox-store.ts';
import { TransferStore } from '../../../src/manager/transfer/transfer-store.ts';
import { Transfers } from '../../../src/manager/transfer/transfers.ts';
import { UsageMeter } from '../../../src/manager/usage/meter.ts';
import { HOUR_MS, startOfHour } from '../../../src/manager/usage/spans.ts';
import { UsageStore } from '../../../src/manager/usage/usage-store.ts';
import { manualTime } from '../../support/manager/manual-time.ts';
import { opened, SILENT } from '../../support/manager/outbox.ts';
import { rowOf } from '../../support/manager/sandbox-rows.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeOnStores } from '../../support/stores.ts';

const TEAM = 'team_1';
let sandboxes = 0;

/** Managers that share a database, each of whose transactions may fail, or be committed without that being known. */
class Scene {
  readonly sandbox_id = `sbx_${++sandboxes}`;
  readonly clock: ManualClock;
  readonly time: DatabaseClock;
  readonly database: Database;
  fails: 'before' | 'after' | null = null;

  private constructor(database: Database, clock: ManualClock, time: DatabaseClock) {
    this.database = database;
    this.clock = clock;
    this.time = time;
  }

  static async on(database: Database): Promise<Scene> {
    const clock = new ManualClock(Date.UTC(2026, 0, 1, 10, 20));
    const scene = new Scene(database, clock, await manualTime(database, clock));
    const store = new SandboxStore(database);
    await store.write((tx) => store.insert(tx, rowOf(scene.sandbox_id, { team_id: TEAM })));
    return scene;
  }

  manager(): Transfers {
    const { database, time: clock } = this;
    const take = () => {
      const { fails } = this;
      this.fails = null;
      return fails;
    };
    class Store extends TransferStore {
      override async write<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
        const fails = take();
        if (fails === 'before') throw new Error('not committed');
        const result = await super.write(work);
        if (fails === 'after') throw new Error('committed, and nobody knows');
        return result;
      }
    }
    const places = { region_id: 'test', cluster_id: 'local' };
    const windows = new UsageMeter({ store: new UsageStore(database), clock, ...places });
    return new Transfers({ store: new Store(database), windows, clock, log: SILENT, pace: null });
  }

  async look(manager: Transfers): Promise<number> {
    return manager.job().run();
  }

  async windows() {
    const { db } = this.database;
    const rows = db.selectFrom('usage_windows').selectAll().where('sandbox_id', '=', this.sandbox_id);
    return (await rows.orderBy('seq').execute()).map(
      ({ window_type, team_id, unit, window_start_ms: start_ms, window_end_ms: end_ms, value }) => ({
        ...{ window_type, team_id, unit, start_ms, end_ms, value },
      }),
    );
  }

  async sum(): Promise<number> {
    return (await this.windows()).reduce((all, { value }) => all + value, 0);
  }
}

/** What it tells of the ways that something has passed on. */
async function told(manager: Transfers): Promise<Sample[] | undefined> {
  return (await manager.metrics()[0]?.samples())?.filter(({ value }) => value > 0);
}

describeOnStores('the bytes that managers carry for a sandbox', (fresh) => {
  it('are in windows to the byte, each once, whatever fails and whoever was frozen', async () => {
    const database = await opened(await fresh());
    const who = fc.nat({ max: 1 });
    const step = fc.oneof(
      fc.record({ who, bytes: fc.integer({ min: 1, max: 1_000_000 }) }),
      fc.record({ ms: fc.nat({ max: 2 * HOUR_MS }) }),
      fc.record({ ms: fc.constant(11 * 60_000) }),
      fc.record({ who, fails: fc.constantFrom('before' as const, 'after' as const, null) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const scene = await Scene.on(database);
        const { sandbox_id, clock } = scene;
        const managers = [scene.manager(), scene.manager()] as const;
        let total = 0;
        for (const next of steps) {
          if ('bytes' in next) {
            managers[next.who as 0 | 1].sent(
              { sandbox_id, team_id: next.bytes % 2 ? TEAM : null },
              next.bytes,
            );
            total += next.bytes;
          } else if ('ms' in next) clock.freeze(next.ms);
          else {
            scene.fails = next.fails;
            await scene.look(managers[next.who as 0 | 1]).catch(() => {});
            scene.fails = null;
          }
        }
        for (const manager of managers) await manager.stop();
        const windows = await scene.windows();
        expect(windows.reduce((sum, { value }) => sum + value, 0)).toBe(total);
        for (const { start_ms, end_ms, value, ...rest } of windows) {
          expect(value).toBeGreaterThan(0);
          expect(startOfHour(start_ms)).toBe(startOfHour(end_ms - 1));
          expect(rest).toEqual({ window_type: 'sandbox.transfer_bytes', team_id: TEAM, unit: 'bytes' });
        }
      }),
      { numRuns: 25 },
    );
  });

  it('are closed at the full hour, and five minutes after the last one', async () => {
    const scene = await Scene.on(await opened(await fresh()));
    const { sandbox_id, clock } = scene;
    const manager = scene.manager();
    const began_ms = clock.wallMs();
    manager.sent({ sandbox_id, team_id: TEAM }, 10);
    expect(await scene.look(manager)).toBe(5_000);
    clock.freeze(5 * 60_000 - 1);
    await scene.look(manager);
    expect(await scene.windows()).toEqual([]);
    clock.freeze(1);
    await scene.look(manager);
    expect(await scene.windows()).toMatchObject([{ value: 10, start_ms: began_ms, end_ms: began_ms + 1 }]);
    const hour_ms = startOfHour(began_ms) + HOUR_MS;
    clock.freeze(hour_ms - 1_000 - clock.wallMs());
    expect(await scene.look(manager)).toBe(1_000);
    manager.sent({ sandbox_id, team_id: TEAM }, 7);
    clock.freeze(1_000);
    await scene.look(manager);
    expect((await scene.windows()).at(-1)).toMatchObject({
      ...{ value: 7, start_ms: hour_ms - 1_000, end_ms: hour_ms - 999 },
    });
  });

  it('are lost at most since the last look where a manager is killed; another one closes what it kept', async () => {
    const scene = await Scene.on(await opened(await fresh()));
    const { sandbox_id, clock } = scene;
    const killed = scene.manager();
    killed.sent({ sandbox_id, team_id: null }, 10);
    await scene.look(killed);
    killed.sent({ sandbox_id, team_id: null }, 5);
    const other = scene.manager();
    await scene.look(other);
    expect(await scene.sum()).toBe(0);
    clock.freeze(11 * 60_000);
    await scene.look(other);
    expect(await scene.sum()).toBe(10);
    await other.stop();
    expect(await scene.sum()).toBe(10);
  });

  it('of one that nobody has recorded are in no window', async () => {
    const scene = await Scene.on(await opened(await fresh()));
    const manager = scene.manager();
    manager.sent({ sandbox_id: 'sbx_orphan', team_id: null }, 10);
    await scene.look(manager);
    await manager.stop();
    const left = await scene.database.db.selectFrom('transfer_counts').selectAll().execute();
    expect([await scene.sum(), left]).toEqual([0, []]);
  });

  it('are those of webhooks, of whose sandbox the team is looked up, until the manager stops', async () => {
    const scene = await Scene.on(await opened(await fresh()));
    const manager = scene.manager();
    const server = createServer((socket) =>
      socket.on('error', () => {}).once('data', () => socket.end('answer')),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const carried = await manager.carry(scene.sandbox_id, connect(port, '127.0.0.1'));
    carried.write('an event');
    const [answer] = (await once(carried, 'data')) as [Buffer];
    await manager.stop();
    expect(await told(manager)).toEqual([
      { labels: { way: 'webhooks', direction: 'egress' }, value: 8 },
      { labels: { way: 'webhooks', direction: 'ingress' }, value: answer.length },
    ]);
    expect(await scene.windows()).toMatchObject([{ value: 8 + answer.length, team_id: TEAM }]);
    const late = connect(port, '127.0.0.1');
    onTestFinished(() => void late.destroy());
    await expect(manager.carry(scene.sandbox_id, late)).rejects.toThrow('stopping');
  });

  it('are those of a connection, both ways, while it is open and once it has closed', async () => {
    const scene = await Scene.on(await opened(await fresh()));
    const { sandbox_id } = scene;
    const manager = scene.manager();
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.write('to the client');
      socket.resume();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const made = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const call = { sandbox_id, team_id: TEAM, way: 'files' as const, request: null as never };
    const carried = await manager.open(call, async () => made);
    const [first] = (await once(carried, 'data')) as [Buffer];
    carried.write('to it');
    const counted = () => told(manager);
    const values = [
      { labels: { way: 'files', direction: 'egress' }, value: first.length },
      { labels: { way: 'files', direction: 'ingress' }, value: 5 },
    ];
    expect(await counted()).toEqual(values);
    carried.write('and more');
    carried.end();
    sockets[0]?.end();
    await once(carried, 'close');
    values[1] = { labels: { way: 'files', direction: 'ingress' }, value: 13 };
    expect(await counted()).toEqual(values);
    await scene.look(manager);
    await manager.stop();
    expect(await scene.sum()).toBe(first.length + 13);
  });
});
