import { DELIVERY_WINDOW_MS, RETAIN_FINAL_MS } from '../../../src/contract/defaults.ts';
import { replicaName } from '../../../src/manager/database/replica.ts';
import { DeliveryViewStore } from '../../../src/manager/outbox/delivery-view-store.ts';
import { endpointOf } from '../../../src/manager/outbox/endpoint-key.ts';
import { EndpointRecordStore } from '../../../src/manager/outbox/endpoint-record-store.ts';
import { EndpointStore, type OwnedEndpoint } from '../../../src/manager/outbox/endpoint-store.ts';
import { OutboxStore } from '../../../src/manager/outbox/outbox-store.ts';
import { OutcomeStore } from '../../../src/manager/outbox/outcome-store.ts';
import { ManualClock } from '../manual-clock.ts';
import type { OutboxUnderTest } from '../outbox/conformance/outbox-under-test.ts';
import { manualTime } from './manual-time.ts';
import { noticeOf, opened, SEAL, SILENT, webhookTargetOf } from './outbox.ts';

const { team_id, webhook_url } = webhookTargetOf();
const ENDPOINT = endpointOf(webhook_url);

/** The manager's engine: a team's deletions for one endpoint, which one replica owns. */
export async function teamOutbox(url: string, clock = new ManualClock()): Promise<OutboxUnderTest> {
  const database = await opened(url);
  const now = await manualTime(database, clock);
  const outbox = new OutboxStore(database, now, SEAL);
  const views = new DeliveryViewStore(database, now);
  const endpoints = new EndpointStore(database, now, replicaName());
  // The lease of a replica that was killed is over by the time that another one takes its place.
  await database.db.updateTable('outbox_replicas').set({ lease_until_ms: 1 }).execute();
  await endpoints.removeEnded();
  await endpoints.register();
  const [owned] = (await endpoints.claim([ENDPOINT])) as [OwnedEndpoint];
  const onLost = () => {
    throw new Error('the endpoint is lost');
  };
  const outcomes = new OutcomeStore(database, now, SILENT);
  const store = new EndpointRecordStore(owned, {
    database,
    clock: now,
    log: SILENT,
    outcomes,
    hasLease: () => true,
    onLost,
  });
  return {
    store,
    event_type: 'sandbox.deleted',
    window_ms: DELIVERY_WINDOW_MS,
    retained_ms: { delivered: RETAIN_FINAL_MS, failed: RETAIN_FINAL_MS, expired: RETAIN_FINAL_MS },
    async append(count) {
      for (let i = 0; i < count; i++) {
        const notice = noticeOf(clock.wallMs(), { sandbox_id: `sb_${i}` });
        await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, notice));
      }
      store.committed();
      const { deliveries } = await views.list(team_id, { limit: count });
      return deliveries.map(({ event_id }) => event_id).toReversed();
    },
    list: (filter) => views.list(team_id, filter),
    find: (event_id) => views.find(team_id, event_id),
    replay: (event_id) => views.replay(team_id, event_id),
    replayAll: async (state) => (await views.replayAll(team_id, state)).replayed,
    discard: (event_id) => outbox.discard(team_id, event_id),
    discardAll: (state) => outbox.discardAll(team_id, state),
    counts: () => views.counts(),
    async prune() {
      while ((await outbox.prune(100)) > 0);
    },
    restart: () => teamOutbox(url, clock),
    advance: (by_ms) => clock.advance(by_ms),
  };
}
