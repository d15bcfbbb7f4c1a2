import { expect, it } from 'vitest';
import { replicaName } from '../../../src/manager/database/replica.ts';
import { endpointKey } from '../../../src/manager/outbox/endpoint-key.ts';
import type { OwnedEndpoint } from '../../../src/manager/outbox/endpoint-store.ts';
import { noticeOf, outcomeOf } from '../../support/manager/outbox.ts';
import { ENDPOINT, openBench } from '../../support/manager/outbox-bench.ts';
import { describeOnStores } from '../../support/stores.ts';

const HOUR_MS = 3_600_000;

describeOnStores('who delivers to which endpoint', (fresh) => {
  it('finds every endpoint with something pending', async () => {
    const { database, outbox, replica, clock } = await openBench(await fresh());
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

  it('gives an endpoint to one replica, and to another with a higher fence once the lease is removed', async () => {
    const { database, deleted, replica, records, views, outcomes } = await openBench(await fresh());
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
    expect(await frozen.load(record)).not.toBeNull();

    await database.db.updateTable('outbox_replicas').set({ lease_until_ms: 1 }).execute();
    expect(await second.renew()).toBe(true);
    expect(await second.removeEnded()).toBe(1);
    const [taken] = (await second.claim([ENDPOINT])) as [OwnedEndpoint];
    expect(taken.fence).toBeGreaterThan(owned.fence);

    expect(await frozen.load(record)).toBeNull();
    expect(frozen.lost).toBe(1);
    await frozen.record(outcomeOf(record, { state: 'failed' }, 400));
    expect(frozen.lost).toBe(2);
    expect(outcomes.refused).toBe(1);
    expect(await views.find('team_1', record.event_id)).toMatchObject({ state: 'pending', attempts: [] });
    expect(await first.renew()).toBe(false);
    const delivering = records(taken);
    const [again] = (await delivering.untried(0, 1)).records;
    if (again) await delivering.record(outcomeOf(again, { state: 'delivered' }));
    expect(await views.find('team_1', record.event_id)).toMatchObject({ state: 'delivered' });
  });

  it('frees what a replica gives back or leaves, and what one that has certainly ended owned', async () => {
    const { deleted, replica } = await openBench(await fresh());
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

  it('is not held up by a lease from before the clock of the database went back', async () => {
    const { database, replica, clock } = await openBench(await fresh());
    const [dead, other] = [replica(), replica()];
    await dead.register();
    await database.db
      .updateTable('outbox_replicas')
      .set({ lease_until_ms: clock.wallMs() + HOUR_MS })
      .execute();
    expect(await other.removeEnded()).toBe(0);
    await clock.advance(20_001);
    expect(await other.removeEnded()).toBe(1);
  });

  it('is not held up by what a clock that was ahead has scheduled', async () => {
    const { database, deleted, owned, now } = await openBench(await fresh());
    await deleted('sb_1');
    const ahead_ms = now.wallMs() + 30 * 24 * HOUR_MS;
    await database.db
      .updateTable('outbox')
      .set({ due_ms: ahead_ms, deadline_ms: ahead_ms, attempts: 1 })
      .execute();
    const records = await owned();
    expect((await records.due(10)).records).toHaveLength(1);
  });
});
