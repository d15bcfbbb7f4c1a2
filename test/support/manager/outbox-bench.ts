import type { Database } from '../../../src/manager/database/database.ts';
import type { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { replicaName } from '../../../src/manager/database/replica.ts';
import { DeliveryViewStore } from '../../../src/manager/outbox/delivery-view-store.ts';
import { endpointKey } from '../../../src/manager/outbox/endpoint-key.ts';
import { EndpointRecordStore } from '../../../src/manager/outbox/endpoint-record-store.ts';
import { EndpointStore, type OwnedEndpoint } from '../../../src/manager/outbox/endpoint-store.ts';
import { OutboxStore } from '../../../src/manager/outbox/outbox-store.ts';
import { OutcomeStore } from '../../../src/manager/outbox/outcome-store.ts';
import { ManualClock } from '../manual-clock.ts';
import { manualTime } from './manual-time.ts';
import { noticeOf, opened, SEAL, SILENT } from './outbox.ts';

/** Where the records of `webhookTargetOf` go. */
export const ENDPOINT = endpointKey('http://consumer.invalid/hook');

/** The parts of the manager's outbox. */
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

/** The manager's outbox on a database, with the clock of a test. */
export async function openBench(url: string): Promise<Bench> {
  const database = await opened(url);
  const clock = new ManualClock();
  const now = await manualTime(database, clock);
  const outbox = new OutboxStore(database, now, SEAL);
  const outcomes = new OutcomeStore(database, now, SILENT);
  const replica = (name = replicaName()) => new EndpointStore(database, now, name);
  const records = (owned: OwnedEndpoint, writer = outcomes) => {
    const counted = { lost: 0 };
    const onLost = () => {
      counted.lost += 1;
    };
    const parts = {
      database,
      clock: now,
      log: SILENT,
      outcomes: writer,
      hasLease: () => true,
      onLost,
    };
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
