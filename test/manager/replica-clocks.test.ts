import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { DatabaseClock } from '../../src/manager/database/database-clock-store.ts';
import { expiryJob } from '../../src/manager/sandboxes/housekeeping.ts';
import type { SandboxRef } from '../../src/manager/sandboxes/transition-runner.ts';
import { eventually } from '../support/eventually.ts';
import { opened } from '../support/manager/outbox.ts';
import { partsOn, scriptedParts } from '../support/manager/scripted-parts.ts';
import { ScriptedRuntime } from '../support/manager/scripted-runtime.ts';
import { type PostgresServer, postgresPrograms, startPostgres } from '../support/postgres.ts';

vi.setConfig({ testTimeout: 60_000 });

const MEMORY = 'sandbox.runtime_mib_milliseconds';
const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;
const WITHIN = { timeout: 30_000, interval: 20 };

/** The clock of a machine that is wrong; a test may step it. */
class WrongClock implements Clock {
  off_ms: number;
  readonly monotonicMs = systemClock.monotonicMs;
  readonly boot = systemClock.boot;
  readonly after = systemClock.after;

  constructor(off_ms: number) {
    this.off_ms = off_ms;
  }

  wallMs(): number {
    return systemClock.wallMs() + this.off_ms;
  }
}

type Parts = Awaited<ReturnType<typeof partsOn>>;

/** What every job of a replica does once that judges by the time. */
async function work(parts: Parts): Promise<void> {
  await parts.clock_watch.job().run();
  await parts.recovery.run();
  await expiryJob(parts).run();
  for (const job of parts.usage.jobs()) await job.run();
}

describe.skipIf(postgresPrograms() === null)('replicas on PostgreSQL whose clocks are wrong', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.stop());

  /** Replicas whose clocks are right, 20 s and an hour ahead, an hour behind, and as a test steps it. */
  async function replicas() {
    const url = await server.database();
    const database = await opened(url);
    const runtime = new ScriptedRuntime();
    const clocks = [0, 20 * SECOND_MS, HOUR_MS, -HOUR_MS, 0].map((off_ms) => new WrongClock(off_ms));
    const all: Parts[] = [];
    for (const clock of clocks) all.push(await partsOn(await opened(url), { clock, runtime }));
    const [right, ...others] = all as [Parts, ...Parts[]];
    const stepped = clocks.at(-1) as WrongClock;
    const row = async ({ sandbox_id }: SandboxRef) =>
      database.db
        .selectFrom('sandboxes')
        .selectAll()
        .where('sandbox_id', '=', sandbox_id)
        .executeTakeFirstOrThrow();
    const windows = () =>
      database.db.selectFrom('usage_windows').selectAll().where('window_type', '=', MEMORY).execute();
    return { all, right, others, runtime, stepped, row, windows };
  }

  it('take no operation from each other, whoever carries it out', async () => {
    const { all, runtime, stepped } = await replicas();
    // Nothing was abandoned before their start.
    for (const each of all) await each.recovery.run();
    for (const owner of all) {
      const others = all.filter((each) => each !== owner);
      for (const verb of ['create', 'fork'] as const) {
        const source = verb === 'fork' ? await owner.claim() : null;
        const release = runtime.hold(verb);
        const before = runtime.calls.length;
        const doing = source ? owner.forks.fork(source, {}) : owner.claim();
        await eventually(() => expect(runtime.calls.length).toBeGreaterThan(before), WITHIN);
        for (const other of others) await work(other);
        stepped.off_ms -= 2 * HOUR_MS;
        await owner.operations.renew();
        for (const other of others) await work(other);
        release();
        await doing;
      }
    }
    expect(runtime.calls.filter((call) => /^(end|remove) /.test(call))).toEqual([]);
  });

  it('pause and delete what has expired, at the time at which it does', async () => {
    const { all, row, stepped } = await replicas();
    for (const [i, owner] of all.entries()) {
      const [long, short, shortest] = [
        await owner.claim({ config: { ttl: 1_800, hard_ttl: 3_000, idle_ttl: 1_200 } }),
        await owner.claim({ config: { ttl: 1 } }),
        await owner.claim({ config: { hard_ttl: 1 } }),
      ];
      const { claimed_at_ms, ...ends } = await row(long);
      expect(ends).toMatchObject({
        expires_at_ms: (claimed_at_ms ?? 0) + 1_800 * SECOND_MS,
        hard_expires_at_ms: (claimed_at_ms ?? 0) + 3_000 * SECOND_MS,
        idle_expires_at_ms: (claimed_at_ms ?? 0) + 1_200 * SECOND_MS,
      });
      stepped.off_ms += HOUR_MS;
      const other = all[(i + 2) % all.length] as Parts;
      const expiry = expiryJob(other);
      await eventually(async () => {
        await expiry.run();
        expect(await row(short)).toMatchObject({ status: 'paused' });
        expect((await row(shortest)).deleted_at_ms).not.toBeNull();
      }, WITHIN);
      const [paused, deleted] = [await row(short), await row(shortest)];
      expect(paused.updated_at_ms).toBeGreaterThanOrEqual(paused.expires_at_ms as number);
      expect(deleted.deleted_at_ms).toBeGreaterThanOrEqual(deleted.hard_expires_at_ms as number);
      for (const each of all) await work(each);
      expect(await row(long)).toMatchObject({ status: 'running', operation: null });
    }
  });

  it('meter and date what a sandbox has lived, whoever began and ended it', async () => {
    const { all, row, stepped, windows } = await replicas();
    for (const [i, owner] of all.entries()) {
      const other = all[(i + 3) % all.length] as Parts;
      const named = await owner.claim({ config: { webhook: { url: 'http://127.0.0.1:9/' } } });
      stepped.off_ms += 5 * HOUR_MS;
      for (const each of all) await work(each);
      await other.deletions.delete(named.sandbox_id, 'team_1', { reason: 'api', actor: null });
      await other.operations.drained();
      const { claimed_at_ms, deleted_at_ms, memory_mib } = await row(named);
      const lived = (await windows()).filter(({ sandbox_id }) => sandbox_id === named.sandbox_id);
      // An hour may have ended meanwhile.
      const [first, last] = [lived[0], lived.at(-1)];
      expect(first?.window_start_ms).toBe(claimed_at_ms);
      const end_ms = last?.window_end_ms as number;
      expect(end_ms).toBeLessThanOrEqual(deleted_at_ms as number);
      expect(lived.reduce((sum, { value }) => sum + value, 0)).toBe(
        memory_mib * (end_ms - (claimed_at_ms as number)),
      );
      expect(end_ms - (claimed_at_ms as number)).toBeLessThan(HOUR_MS / 2);
      const [{ body }] = (await other.database.db
        .selectFrom('outbox')
        .select('body')
        .where('sandbox_id', '=', named.sandbox_id)
        .execute()) as [{ body: string }];
      expect(Date.parse(JSON.parse(body).timestamp)).toBe(end_ms);
    }
  });

  it('follow a server to which they are connected anew', async () => {
    const url = await server.database();
    const database = await opened(url);
    const clock = await DatabaseClock.open(database, new WrongClock(0));
    const operator = new pg.Client({ connectionString: url });
    await operator.connect();
    // As another server after a failover: sessions that begin from now on see another time.
    await operator.query(`CREATE SCHEMA elsewhere;
      CREATE FUNCTION elsewhere.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
        AS $$ SELECT pg_catalog.statement_timestamp() + interval '1 hour' $$;
      ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET search_path = elsewhere, pg_catalog, public`);
    await operator.end();
    await server.dropConnections(url);
    await eventually(async () => {
      await database.db.selectFrom('settings').select('key').execute();
      expect(clock.machine_ahead_ms).toBeLessThan(-HOUR_MS + 30 * SECOND_MS);
    }, WITHIN);
    expect(clock.wallMs()).toBeGreaterThan(systemClock.wallMs() + HOUR_MS - 30 * SECOND_MS);
  });
});

describe('a manager on SQLite whose clock is stepped', () => {
  it.each([HOUR_MS, -HOUR_MS])('by %i ms ends and meters sandboxes as if it were not', async (step_ms) => {
    const parts = await scriptedParts();
    const { claim, clock, sandboxes, services, deletions, operations, database } = parts;
    const named = await claim({ config: { ttl: 1_800, hard_ttl: 3_000 } });
    const { claimed_at_ms } = await sandboxes.get(named);
    const begun_ms = claimed_at_ms as number;
    await work(parts);
    clock.step(step_ms);
    const expiry = expiryJob(parts);
    const until = async (after_ms: number) => {
      await clock.advance(begun_ms + after_ms - services.clock.wallMs());
      await work(parts);
    };
    await until(1_799 * SECOND_MS);
    expect((await sandboxes.get(named)).status).toBe('running');
    await until(1_800 * SECOND_MS + 1);
    await eventually(async () => {
      await expiry.run();
      expect((await sandboxes.get(named)).status).toBe('paused');
    }, WITHIN);
    clock.step(-2 * step_ms);
    await until(2_999 * SECOND_MS);
    expect((await sandboxes.get(named)).status).toBe('paused');
    await until(3_000 * SECOND_MS + 1);
    await eventually(async () => {
      await expiry.run();
      expect((await sandboxes.getKept(named)).deleted_at_ms).not.toBeNull();
    }, WITHIN);
    deletions.stop();
    await operations.drained();
    const windows = await database.db
      .selectFrom('usage_windows')
      .selectAll()
      .where('window_type', '=', MEMORY)
      .execute();
    const lived_ms = windows.reduce((sum, { value, window_start_ms, window_end_ms }) => {
      expect(value).toBe(512 * (window_end_ms - window_start_ms));
      return sum + window_end_ms - window_start_ms;
    }, 0);
    expect(Math.abs(lived_ms - 1_800 * SECOND_MS)).toBeLessThan(SECOND_MS);
  });
});
