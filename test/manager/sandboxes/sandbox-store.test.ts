import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { SettingStore } from '../../../src/manager/database/setting-store.ts';
import { HousekeepingStore } from '../../../src/manager/sandboxes/housekeeping-store.ts';
import { IdempotencyStore } from '../../../src/manager/sandboxes/idempotency-store.ts';
import { type ManagedSandboxRow, SandboxStore } from '../../../src/manager/sandboxes/sandbox-store.ts';
import { TRANSITIONS, type Verb } from '../../../src/manager/sandboxes/transitions.ts';
import { describeOnStores } from '../../support/stores.ts';

const LEASE = { owner: 'replica_1', until_ms: 1_000 };

function rowOf(sandbox_id: string, overrides: Partial<ManagedSandboxRow> = {}): ManagedSandboxRow {
  return {
    sandbox_id,
    team_id: 'team_1',
    template_id: 'default',
    status: 'running',
    operation: null,
    operation_owner: null,
    operation_until_ms: null,
    auto_resume: 0,
    pod_name: 'pod',
    runtime_generation: 1,
    memory_mib: 512,
    cpu_millis: 100,
    resources: '{"memory":"512Mi","cpu":0.1}',
    network: null,
    webhook_url: null,
    webhook_secret_sealed: null,
    watch_dir: null,
    env_sealed: null,
    ttl_s: 0,
    hard_ttl_s: 0,
    expires_at_ms: null,
    hard_expires_at_ms: null,
    claimed_at_ms: 1,
    created_at_ms: 1,
    updated_at_ms: 1,
    deleted_at_ms: null,
    node: 'local',
    ...overrides,
  };
}

async function storeWith(url: string, ...rows: ManagedSandboxRow[]) {
  const database = await openDatabase(url);
  onTestFinished(() => database.close());
  const store = new SandboxStore(database);
  for (const row of rows) await store.write((tx) => store.insert(tx, row));
  return { store, housekeeping: new HousekeepingStore(database.db), database };
}

const one = (sandbox_id: string, team_id: string | null = 'team_1') => ({ sandbox_id, team_id, now_ms: 5 });

describeOnStores('the store of sandboxes', (fresh) => {
  it('lets one of many begin, and tells the others why not', async () => {
    const { store } = await storeWith(await fresh(), rowOf('a'));
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        store.write((tx) =>
          store.beginTransition(tx, 'pause', one('a'), { ...LEASE, owner: `replica_${i}` }),
        ),
      ),
    );
    const begun = outcomes.filter((outcome) => !('refused' in outcome));
    expect(begun).toHaveLength(1);
    const refused = outcomes.filter((outcome) => 'refused' in outcome);
    expect(refused).toHaveLength(9);
    for (const each of refused) expect(each).toEqual({ refused: 'busy', status: 'running' });
  });

  it('begins each transition from its statuses alone, for its team alone', async () => {
    const { store } = await storeWith(await fresh());
    const statuses = ['starting', 'running', 'paused', 'terminating', 'failed'] as const;
    for (const verb of Object.keys(TRANSITIONS) as Verb[]) {
      for (const status of statuses) {
        const id = `${verb}-${status}`;
        await store.write((tx) => store.insert(tx, rowOf(id, { status })));
        const foreign = await store.write((tx) => store.beginTransition(tx, verb, one(id, 'team_2'), LEASE));
        expect(foreign).toEqual({ refused: 'not_found', status: null });
        const outcome = await store.write((tx) => store.beginTransition(tx, verb, one(id), LEASE));
        const { from, operation, during = status } = TRANSITIONS[verb];
        if (!from.includes(status)) expect(outcome).toEqual({ refused: 'status', status });
        else expect(outcome).toMatchObject({ status: during, operation, operation_owner: 'replica_1' });
      }
    }
  });

  it('ends an operation for its owner alone, and gives it to one who takes over', async () => {
    const { store, housekeeping } = await storeWith(await fresh(), rowOf('a'));
    const row = (await store.write((tx) =>
      store.beginTransition(tx, 'pause', one('a'), LEASE),
    )) as ManagedSandboxRow;
    const end = (owner: string) =>
      store.write((tx) => store.endOperation(tx, 'a', 'pausing', owner, { status: 'paused' }));
    expect(await end('replica_2')).toBeNull();
    await store.renew(['a'], { owner: 'replica_1', until_ms: 2_000 });
    // It was renewed since it was read.
    expect(await store.takeOver(row, { owner: 'replica_2', until_ms: 3_000 })).toBeNull();
    const [seen] = await housekeeping.withOperation();
    const takers = await Promise.all(
      ['replica_2', 'replica_3'].map((owner) =>
        store.takeOver(seen as ManagedSandboxRow, { owner, until_ms: 3_000 }),
      ),
    );
    const [taker] = takers.filter((taken) => taken !== null);
    expect(takers.filter((taken) => taken !== null)).toHaveLength(1);
    expect(await end('replica_1')).toBeNull();
    expect(await end(taker?.operation_owner as string)).toMatchObject({ status: 'paused', operation: null });
    expect(await housekeeping.withOperation()).toEqual([]);
  });

  it('finds whose time has come, and when the next one is', async () => {
    const { housekeeping } = await storeWith(
      await fresh(),
      rowOf('soft', { expires_at_ms: 10 }),
      rowOf('soft-paused', { expires_at_ms: 10, status: 'paused' }),
      rowOf('soft-later', { expires_at_ms: 60 }),
      rowOf('hard', { hard_expires_at_ms: 10 }),
      rowOf('hard-failed', { hard_expires_at_ms: 10, status: 'failed' }),
      rowOf('hard-busy', { hard_expires_at_ms: 10, operation: 'forking' }),
      rowOf('hard-going', { hard_expires_at_ms: 10, status: 'terminating', operation: 'cleaning' }),
      rowOf('hard-later', { hard_expires_at_ms: 50, status: 'paused' }),
    );
    const { rows, next_ms } = await housekeeping.expired(20, 100, []);
    expect(rows.map(({ sandbox_id }) => sandbox_id).sort()).toEqual(['hard', 'hard-failed', 'soft']);
    expect(next_ms).toBe(50);
    expect((await housekeeping.expired(5, 100, [])).next_ms).toBe(10);
  });

  it('shows nobody what is gone, and forgets it', async () => {
    const { store, housekeeping } = await storeWith(
      await fresh(),
      rowOf('gone', { deleted_at_ms: 10 }),
      rowOf('here'),
    );
    expect(await store.find(store.db, 'gone', 'team_1')).toBeNull();
    expect(await store.list('team_1', { limit: 10, offset: 0 })).toMatchObject({ count: 1 });
    expect(await housekeeping.purge(10, 100)).toBe(0);
    expect(await housekeeping.purge(11, 100)).toBe(1);
    expect(await housekeeping.purge(11, 100)).toBe(0);
  });

  it('removes a claim of its own that failed, with its key', async () => {
    const claiming = { operation: 'claiming', operation_owner: 'replica_1', operation_until_ms: 9 } as const;
    const { store, database } = await storeWith(await fresh(), rowOf('a', claiming), rowOf('b'));
    const keys = new IdempotencyStore(database.db);
    const key = { team_id: 'team_1', key: 'k', body_hash: 'h' };
    await store.write((tx) => keys.reserve(tx, key, 'a', 5));
    await store.write((tx) => store.drop(tx, 'a', 'replica_2'));
    expect(await store.find(store.db, 'a', null)).not.toBeNull();
    await store.write((tx) => store.drop(tx, 'b', 'replica_1'));
    expect(await store.find(store.db, 'b', null)).not.toBeNull();
    await store.write((tx) => store.drop(tx, 'a', 'replica_1'));
    expect(await store.find(store.db, 'a', null)).toBeNull();
    expect(await store.write((tx) => keys.lookUp(tx, key, 0))).toEqual({ outcome: 'new' });
  });
});

describeOnStores('the store of keys', (fresh) => {
  it('tells what became of a claim, for as long as it is kept', async () => {
    const { store, database } = await storeWith(await fresh());
    const keys = new IdempotencyStore(database.db);
    const key = { team_id: 'team_1', key: 'k', body_hash: 'h' };
    const lookUp = (claim = key, since_ms = 0) => store.write((tx) => keys.lookUp(tx, claim, since_ms));
    expect(await lookUp()).toEqual({ outcome: 'new' });
    await store.write((tx) => keys.reserve(tx, key, 'a', 5));
    expect(await lookUp()).toEqual({ outcome: 'under_way' });
    expect(await lookUp({ ...key, body_hash: 'other' })).toEqual({ outcome: 'conflict' });
    expect(await lookUp({ ...key, team_id: 'team_2' })).toEqual({ outcome: 'new' });
    await keys.purge(100, 100);
    expect(await lookUp()).toEqual({ outcome: 'under_way' });
    await store.write((tx) => keys.storeAnswer(tx, 'a', 201, { n: 1 }));
    expect(await lookUp()).toMatchObject({ outcome: 'answered', status_code: 201, answer: { n: 1 } });
    expect(await lookUp(key, 6)).toEqual({ outcome: 'new' });
    await store.write((tx) => keys.reserve(tx, key, 'b', 7));
    await store.write((tx) => keys.storeAnswer(tx, 'b', 201, {}));
    await keys.purge(100, 100);
    expect(await lookUp()).toEqual({ outcome: 'new' });
  });
});

describeOnStores('the store of settings', (fresh) => {
  it('keeps what was there first', async () => {
    const { database } = await storeWith(await fresh());
    const settings = new SettingStore(database.db);
    expect(await settings.keep('a', '1')).toBe('1');
    expect(await settings.keep('a', '2')).toBe('1');
  });
});
