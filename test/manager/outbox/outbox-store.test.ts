import { expect, it } from 'vitest';
import type { Database } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { endpointKey } from '../../../src/manager/database/endpoint-key.ts';
import { replicaName } from '../../../src/manager/database/replica.ts';
import { DeliveryViewStore } from '../../../src/manager/outbox/delivery-view-store.ts';
import { EndpointRecordStore } from '../../../src/manager/outbox/endpoint-record-store.ts';
import { EndpointStore, type OwnedEndpoint } from '../../../src/manager/outbox/endpoint-store.ts';
import { OutboxStore } from '../../../src/manager/outbox/outbox-store.ts';
import { OutcomeStore } from '../../../src/manager/outbox/outcome-store.ts';
import { sign } from '../../../src/webhook/signature.ts';
import {
  noticeOf,
  opened,
  outcomeOf,
  SEAL,
  SECRET,
  SILENT,
  undeliveredRecord,
  webhookTargetOf,
} from '../../support/manager/outbox.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeOnStores } from '../../support/stores.ts';

const HOUR_MS = 3_600_000;
const ENDPOINT = endpointKey('http://consumer.invalid/hook');

interface Bench {
  database: Database;
  clock: ManualClock;
  now: DatabaseClock;
  outbox: OutboxStore;
  views: DeliveryViewStore;
  outcomes: OutcomeStore;
  replica(name?: string): EndpointStore;
  records(owned: OwnedEndpoint, outcomes?: OutcomeStore): EndpointRecordStore & { lost: number };
  /** Claims the endpoint for a new replica. */
  owned(): Promise<EndpointRecordStore & { lost: number }>;
  deleted(sandbox_id: string): Promise<void>;
}

async function bench(url: string): Promise<Bench> {
  const database = await opened(url);
  const clock = new ManualClock();
  const now = new DatabaseClock(database, clock);
  const outbox = new OutboxStore(database, now, SEAL);
  const outcomes = new OutcomeStore(database, clock, now, SILENT);
  const replica = (name = replicaName()) => new EndpointStore(database, now, name);
  const records = (owned: OwnedEndpoint, writer = outcomes) => {
    const counted = { lost: 0 };
    const onLost = () => {
      counted.lost += 1;
    };
    const parts = { database, clock: now, outcomes: writer, onLost };
    return Object.defineProperty(new EndpointRecordStore(owned, parts), 'lost', {
      get: () => counted.lost,
    }) as EndpointRecordStore & { lost: number };
  };
  return {
    database,
    clock,
    now,
    outbox,
    views: new DeliveryViewStore(database, now),
    outcomes,
    replica,
    records,
    async owned() {
      const store = replica();
      await store.register();
      const [owned] = await store.claim([ENDPOINT]);
      return records(owned as OwnedEndpoint);
    },
    async deleted(sandbox_id) {
      const notice = noticeOf(clock.wallMs(), { sandbox_id });
      await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, notice));
    },
  };
}

describeOnStores("the manager's outbox", (fresh) => {
  it('keeps the exact signed request of a deletion, and nothing of the secret', async () => {
    const { database, clock, outbox, views } = await bench(await fresh());
    const notice = noticeOf(clock.wallMs(), { webhook_secret: SECRET, reason: 'ttl_expired', actor: null });
    await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, notice));
    const row = await database.db.selectFrom('outbox').selectAll().executeTakeFirstOrThrow();
    const event_id = row.event_id;
    expect(event_id).toMatch(/^evt_[0-9a-f-]{36}$/);
    expect(row.body).toBe(
      `{"event_id":"${event_id}","event_type":"sandbox.deleted","timestamp":"2026-01-01T00:00:00.000Z",` +
        `"sandbox_id":"sb_1","team_id":"team_1","payload":{"reason":"ttl_expired","actor":null}}`,
    );
    expect(JSON.parse(row.headers)).toEqual({
      'Content-Type': 'application/json',
      'User-Agent': expect.stringMatching(/^sandbox-manager\/\d/),
      'X-Service-Signature': sign(SECRET, row.body),
      'ce-specversion': '1.0',
      'ce-id': event_id,
      'ce-source': '/sandboxes/sb_1',
      'ce-type': 'sandbox.deleted',
      'ce-time': '2026-01-01T00:00:00.000Z',
    });
    expect(JSON.parse(row.signatures ?? '')).toHaveLength(360);
    expect(row.url).toBe('http://consumer.invalid/hook?key=1');
    expect(row.endpoint).toBe(ENDPOINT);
    expect(JSON.stringify(row)).not.toContain(SECRET.slice(6));
    expect(await views.find('team_1', event_id)).toMatchObject({ state: 'pending', sequence: null });
  });

  it('keeps nothing of a deletion that is taken back', async () => {
    const { database, clock, outbox } = await bench(await fresh());
    const failing = database.db.transaction().execute(async (tx) => {
      await outbox.insertDeleted(tx, noticeOf(clock.wallMs()));
      throw new Error('on purpose');
    });
    await expect(failing).rejects.toThrow('on purpose');
    expect(await database.db.selectFrom('outbox').selectAll().execute()).toEqual([]);
  });

  it('takes records over as they are, once, with their attempts going on', async () => {
    const { database, outbox, views, owned } = await bench(await fresh());
    const attempt = {
      attempt: 1,
      started_at_ms: 1_000,
      duration_ms: 2,
      status: null,
      error: 'dns' as const,
      next_attempt_at_ms: 2_000,
      response_body: null,
    };
    const tried = undeliveredRecord(2, {
      attempts: 1,
      failures: 1,
      due_in_ms: 500,
      probe_in_ms: 300,
      attempt_log: [attempt],
    });
    const given = [undeliveredRecord(1), tried];
    const sender = webhookTargetOf({ webhook_secret: SECRET });
    for (let i = 0; i < 2; i++) {
      await database.db.transaction().execute(async (tx) => {
        await outbox.takeOverAttempts(tx, await outbox.takeOver(tx, sender, given));
      });
    }
    const page = await views.list('team_1', { limit: 10 });
    expect(page.deliveries.map(({ event_id, sequence }) => [event_id, sequence])).toEqual([
      [tried.event_id, 2],
      [given[0]?.event_id, 1],
    ]);
    const detail = await views.find('team_1', tried.event_id);
    expect(detail).toMatchObject({ body: tried.body, headers: tried.headers, sandbox_id: 'sb_1' });
    expect(detail?.attempts).toEqual([
      expect.objectContaining({ attempt: 1, error: 'dns', next_attempt_at: '1970-01-01T00:00:02.000Z' }),
    ]);
    const records = await owned();
    expect((await records.untried(0, 10)).records).toHaveLength(1);
    const probe = await records.probeCandidate([]);
    expect(probe).toMatchObject({ event_id: tried.event_id, attempts: 1, failures: 1 });
    const stored = probe && (await records.request(probe));
    expect(stored).toMatchObject({ body: tried.body, signatures: null });
    expect(stored?.secret_sealed).not.toContain(SECRET);
    expect(SEAL.open(stored?.secret_sealed ?? '', `outbox:${tried.event_id}`)).toBe(SECRET);
  });

  it('gives out what was never tried in order and once, also what becomes visible late', async () => {
    const { database, deleted, owned } = await bench(await fresh());
    for (const id of ['sb_1', 'sb_2', 'sb_3']) await deleted(id);
    const records = await owned();
    const first = await records.untried(0, 2);
    expect(first.more).toBe(true);
    expect(first.records.map(({ id }) => id)).toEqual([1, 2]);
    const second = await records.untried(2, 2);
    expect(second).toMatchObject({ more: false, records: [{ id: 3 }] });
    expect((await records.untried(3, 2)).records).toEqual([]);
    // As of a transaction that began before the others and is committed after them.
    await database.db.updateTable('outbox').set({ endpoint: 'elsewhere' }).where('id', '=', 1).execute();
    await deleted('sb_4');
    const late = await records.untried(3, 2);
    expect(late.records.map(({ id }) => id)).toEqual([4]);
    await database.db.updateTable('outbox').set({ endpoint: ENDPOINT }).where('id', '=', 1).execute();
    expect((await records.untried(4, 2)).records).toEqual([]);
  });

  it('tells what is due, overdue and may be the probe', async () => {
    const { clock, deleted, owned, now } = await bench(await fresh());
    for (const id of ['sb_1', 'sb_2', 'sb_3']) await deleted(id);
    const records = await owned();
    const given = (await records.untried(0, 10)).records;
    const at = now.now();
    for (const [i, record] of given.entries()) {
      const decision = {
        state: 'pending',
        due_ms: at + (i + 1) * 1_000,
        probe_ms: at + 100 * (3 - i),
      } as const;
      await records.record(outcomeOf(record, decision, 503));
    }
    expect(await records.due(10)).toEqual({ records: [], next_due_ms: at + 1_000 });
    await clock.advance(2_000);
    const due = await records.due(10);
    expect(due.records.map(({ event_id }) => event_id)).toEqual(
      [given[0], given[1]].map((record) => record?.event_id),
    );
    expect(due.records[0]).toMatchObject({ attempts: 1, failures: 1 });
    expect(due.next_due_ms).toBe(at + 3_000);
    expect((await records.due(1)).next_due_ms).toBe(at + 2_000);
    const probe = await records.probeCandidate([]);
    expect(probe?.event_id).toBe(given[2]?.event_id);
    expect((await records.probeCandidate([probe?.id ?? 0]))?.event_id).toBe(given[1]?.event_id);
    expect((await records.overdue(10)).records).toEqual([]);
    await clock.advance(24 * HOUR_MS);
    expect((await records.overdue(2)).records).toHaveLength(2);
  });

  it('does not give out what was settled while it was being read', async () => {
    const { deleted, owned, database, now, records: recordsOf } = await bench(await fresh());
    await deleted('sb_1');
    await owned();
    const row = await database.db.selectFrom('outbox_endpoints').selectAll().executeTakeFirstOrThrow();
    // Settles at once, so that the reads that are under way show what was before.
    const at_once = { record: async () => true } as unknown as OutcomeStore;
    const records = recordsOf({ endpoint: ENDPOINT, fence: row.fence }, at_once);
    const [record] = (await records.untried(0, 1)).records;
    const reading = records.untried(1, 10);
    if (record) await records.record(outcomeOf(record, { state: 'pending', due_ms: now.now(), probe_ms: 0 }));
    expect((await reading).records).toEqual([]);
  });

  it('keeps an outcome that the database refuses with less, and all others whole', async () => {
    const { deleted, owned, views } = await bench(await fresh());
    for (let i = 1; i <= 9; i++) await deleted(`sb_${i}`);
    const records = await owned();
    const given = (await records.untried(0, 9)).records;
    const recorded = given.map((record, i) => {
      const outcome = { ...outcomeOf(record, { state: 'delivered' }), response_body: 'fine' };
      // One is refused by PostgreSQL for its body, the other by SQLite for its duration.
      const poison = { response_body: 'a\0b', duration_ms: Number.NaN };
      return records.record(i === 4 ? { ...outcome, ...poison } : outcome);
    });
    await Promise.all(recorded);
    expect(records.lost).toBe(0);
    for (const [i, { event_id }] of given.entries()) {
      const detail = await views.find('team_1', event_id);
      expect(detail?.state).toBe('delivered');
      const bodies = detail?.attempts.map(({ response_body }) => response_body);
      if (i === 4) expect(bodies).not.toContain('fine');
      else expect(bodies).toEqual(['fine']);
    }
  });

  it('keeps outcomes and attempts, and ends a record once', async () => {
    const { deleted, owned, views, now, clock } = await bench(await fresh());
    await deleted('sb_1');
    const records = await owned();
    const [record] = (await records.untried(0, 1)).records;
    if (!record) throw new Error('nothing to send');
    const due_ms = now.now() + 500;
    await records.record(outcomeOf(record, { state: 'pending', due_ms, probe_ms: due_ms }, 503));
    await clock.advance(500);
    const [again] = (await records.due(1)).records;
    if (!again) throw new Error('nothing is due');
    await records.record(outcomeOf(again, { state: 'delivered' }));
    const detail = await views.find('team_1', record.event_id);
    expect(detail).toMatchObject({ state: 'delivered', next_attempt_at: null });
    expect(detail?.finished_at).toBe(new Date(now.now()).toISOString());
    expect(detail?.attempts.map(({ attempt, status }) => [attempt, status])).toEqual([
      [1, 503],
      [2, 200],
    ]);
    expect(detail?.attempts[0]?.next_attempt_at).toBe(new Date(due_ms).toISOString());
    expect(await records.request(again)).toBeNull();
  });

  it('gives an endpoint to one replica, and to another with a higher fence once the lease is removed', async () => {
    const { database, deleted, replica, records, views, outcomes } = await bench(await fresh());
    await deleted('sb_1');
    const [first, second] = [replica(), replica()];
    await first.register();
    await second.register();
    const [owned] = (await first.claim([ENDPOINT])) as [OwnedEndpoint];
    expect(await second.claim([ENDPOINT])).toEqual([]);
    expect(await second.pending()).toMatchObject([{ endpoint: ENDPOINT, owner: first.owner }]);
    expect(await second.removeEnded()).toBe(0);
    const frozen = records(owned);
    const [record] = (await frozen.untried(0, 1)).records;
    if (!record) throw new Error('nothing to send');
    expect(await frozen.request(record)).not.toBeNull();

    await database.db.updateTable('outbox_replicas').set({ lease_until_ms: 1 }).execute();
    expect(await second.renew()).toBe(true);
    expect(await second.removeEnded()).toBe(1);
    const [taken] = (await second.claim([ENDPOINT])) as [OwnedEndpoint];
    expect(taken.fence).toBeGreaterThan(owned.fence);

    expect(await frozen.request(record)).toBeNull();
    await frozen.record(outcomeOf(record, { state: 'failed' }, 400));
    expect(frozen.lost).toBe(1);
    expect(outcomes.refused).toBe(1);
    expect(await views.find('team_1', record.event_id)).toMatchObject({ state: 'pending', attempts: [] });
    expect(await first.renew()).toBe(false);
    const delivering = records(taken);
    const [again] = (await delivering.untried(0, 1)).records;
    if (again) await delivering.record(outcomeOf(again, { state: 'delivered' }));
    expect(await views.find('team_1', record.event_id)).toMatchObject({ state: 'delivered' });
  });

  it('frees what a replica gives back or leaves, and what one that has certainly ended owned', async () => {
    const { deleted, replica } = await bench(await fresh());
    await deleted('sb_1');
    const first = replica();
    await first.register();
    const [owned] = (await first.claim([ENDPOINT])) as [OwnedEndpoint];
    await first.release({ ...owned, fence: owned.fence - 1 });
    const second = replica();
    await second.register();
    expect(await second.claim([ENDPOINT])).toEqual([]);
    await first.release(owned);
    const [next] = (await second.claim([ENDPOINT])) as [OwnedEndpoint];
    expect(next.fence).toBeGreaterThan(owned.fence);
    await second.leave();
    const dead = replica(replicaName().replace(/\/\d+\/\d+\//, '/1/1/'));
    await dead.register();
    expect(await dead.claim([ENDPOINT])).toHaveLength(1);
    expect(await first.removeEnded()).toBe(1);
    expect(await first.pending()).toMatchObject([{ owner: null }]);
  });

  it('shows a team its own records alone, newest first, in pages', async () => {
    const { database, outbox, views, deleted, clock } = await bench(await fresh());
    for (let i = 1; i <= 5; i++) await deleted(`sb_${i}`);
    const other = noticeOf(clock.wallMs(), { team_id: 'team_2', sandbox_id: 'sb_other' });
    await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, other));
    const first = await views.list('team_1', { limit: 3 });
    expect(first.deliveries.map(({ sandbox_id }) => sandbox_id)).toEqual(['sb_5', 'sb_4', 'sb_3']);
    const rest = await views.list('team_1', { limit: 3, before_id: Number(first.next_cursor) });
    expect(rest.deliveries.map(({ sandbox_id }) => sandbox_id)).toEqual(['sb_2', 'sb_1']);
    expect(rest.next_cursor).toBeNull();
    expect((await views.list('team_1', { limit: 9, state: 'failed' })).deliveries).toEqual([]);
    expect((await views.list('team_1', { limit: 9, event_type: 'agent.event' })).deliveries).toEqual([]);
    const [theirs] = (await views.list('team_2', { limit: 9 })).deliveries;
    expect(await views.find('team_1', theirs?.event_id ?? '')).toBeNull();
    expect(await views.replay('team_1', theirs?.event_id ?? '')).toEqual([]);
    expect(await views.counts()).toEqual({ pending: 6, oldest_at_ms: clock.wallMs() });
  });

  it('makes final records pending again with a new window, and leaves pending ones as they are', async () => {
    const { database, deleted, owned, views, clock, now } = await bench(await fresh());
    for (const id of ['sb_1', 'sb_2', 'sb_3']) await deleted(id);
    const records = await owned();
    const given = (await records.untried(0, 2)).records;
    for (const record of given) await records.record(outcomeOf(record, { state: 'failed' }, 400));
    const [first, second] = given.map(({ event_id }) => event_id) as [string, string];
    const before = await database.db.selectFrom('outbox').selectAll().where('event_id', '=', first).execute();
    await clock.advance(HOUR_MS);
    expect(await views.replay('team_1', first)).toEqual([ENDPOINT]);
    expect(await views.replay('team_1', first)).toEqual([]);
    const [row] = await database.db.selectFrom('outbox').selectAll().where('event_id', '=', first).execute();
    expect(row).toEqual({
      ...before[0],
      state: 'pending',
      due_ms: now.now(),
      probe_ms: now.now(),
      deadline_ms: now.now() + 24 * HOUR_MS,
      failures: 0,
      finished_at_ms: null,
    });
    expect((await records.due(10)).records).toMatchObject([{ event_id: first, attempts: 1 }]);
    expect(await views.replayAll('team_2', 'failed')).toMatchObject({ replayed: 0 });
    expect(await views.replayAll('team_1', 'failed')).toEqual({
      replayed: 1,
      endpoints: new Set([ENDPOINT]),
    });
    expect((await records.due(10)).records.map(({ event_id }) => event_id).sort()).toEqual(
      [first, second].sort(),
    );
  });

  it('removes final records 24 h after they ended, with their attempts, and nothing that is pending', async () => {
    const { database, deleted, owned, outbox, clock } = await bench(await fresh());
    for (const id of ['sb_1', 'sb_2']) await deleted(id);
    const records = await owned();
    const [record] = (await records.untried(0, 1)).records;
    if (record) await records.record(outcomeOf(record, { state: 'delivered' }));
    await clock.advance(24 * HOUR_MS - 1);
    expect(await outbox.prune(10)).toBe(0);
    await clock.advance(1);
    expect(await outbox.prune(10)).toBe(1);
    const left = await database.db.selectFrom('outbox').select(['sandbox_id', 'state']).execute();
    expect(left).toEqual([{ sandbox_id: 'sb_2', state: 'pending' }]);
    expect(await database.db.selectFrom('outbox_attempts').selectAll().execute()).toEqual([]);
  });

  it('finds every endpoint with something pending', async () => {
    const { database, outbox, replica, clock } = await bench(await fresh());
    const urls = [
      'https://a.example/x?1',
      'https://a.example/x?2',
      'https://a.example/y',
      'http://b.example:81/',
    ];
    for (const webhook_url of urls) {
      const notice = noticeOf(clock.wallMs(), { webhook_url });
      await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, notice));
    }
    const found = await replica().pending();
    expect(found.sort((a, b) => Number(a.newest_untried_id) - Number(b.newest_untried_id))).toEqual(
      (
        [
          ['https://a.example/x', 2],
          ['https://a.example/y', 3],
          ['http://b.example:81/', 4],
        ] as const
      ).map(([url, newest_untried_id]) => ({
        endpoint: endpointKey(url),
        owner: null,
        newest_untried_id,
        first_due_ms: null,
      })),
    );
  });

  it('is not held up by what a clock that was ahead has scheduled', async () => {
    const { database, deleted, owned, now } = await bench(await fresh());
    await deleted('sb_1');
    const ahead_ms = now.now() + 30 * 24 * HOUR_MS;
    await database.db
      .updateTable('outbox')
      .set({ due_ms: ahead_ms, deadline_ms: ahead_ms, attempts: 1 })
      .execute();
    const records = await owned();
    expect((await records.due(10)).records).toHaveLength(1);
  });
});
