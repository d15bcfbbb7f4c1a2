import type { DeliveryDetail, DeliveryPage } from '../../../../src/contract/deliveries.ts';
import type { FinalState, UndeliveredState } from '../../../../src/contract/words.ts';
import type {
  AttemptOutcome,
  DeliveryFilter,
  DeliveryStore,
  DueRecord,
} from '../../../../src/outbox/store.ts';
import type { Decision } from '../../../../src/webhook/retry.ts';

/** One engine's outbox, with records of one sandbox or for one endpoint, as the suite sees it. */
export interface OutboxUnderTest {
  store: DeliveryStore;
  /** The type of the events that `append` commits. */
  event_type: string;
  /** How long a record is attempted, and how long one that ended in a state is kept. */
  window_ms: number;
  retained_ms: Record<FinalState, number>;
  /** Commits events one after another; resolves to their ids, in order, once they are acknowledged. */
  append(count: number): Promise<string[]>;
  list(filter: DeliveryFilter): Promise<DeliveryPage>;
  find(event_id: string): Promise<DeliveryDetail | null>;
  replay(event_id: string): Promise<unknown>;
  replayAll(state: FinalState): Promise<number>;
  discard(event_id: string): Promise<boolean>;
  discardAll(state: UndeliveredState): Promise<number>;
  counts(): Promise<{ pending: number; oldest_at_ms: number | null }>;
  /** Removes everything that was kept long enough. */
  prune(): Promise<void>;
  /** The outbox of a new process, on what a `kill -9` of this one leaves behind. */
  restart(): Promise<OutboxUnderTest>;
  /** Lets time pass. Throws where the engine's clock is the machine's. */
  advance(by_ms: number): Promise<void>;
}

/** One promise of the port: a sentence, and what shows it. `takes_time`: it calls `advance`. */
export interface Case {
  name: string;
  takes_time?: true;
  run(outbox: OutboxUnderTest): Promise<void>;
}

/** The next outcome of a record. */
export function outcomeOf(
  record: DueRecord,
  decision: Decision,
  changes: Partial<AttemptOutcome> = {},
): AttemptOutcome {
  return {
    id: record.id,
    attempt: record.attempts + 1,
    started_at_ms: Date.UTC(2026, 0, 1),
    duration_ms: 12,
    status: decision.state === 'delivered' ? 200 : 503,
    error: null,
    error_detail: null,
    response_body: 'thanks',
    decision,
    ...changes,
  };
}

/** To be tried again at `due_ms`. */
export function retryAt(due_ms: number, probe_ms = due_ms): Decision {
  return { state: 'pending', due_ms, probe_ms };
}

/** Commits events and reads them all, as the dispatcher would. */
export async function appended(outbox: OutboxUnderTest, count: number): Promise<DueRecord[]> {
  const event_ids = await outbox.append(count);
  const { records } = await outbox.store.untried(0, count + 1);
  const added = records.filter(({ event_id }) => event_ids.includes(event_id));
  if (added.length !== count) throw new Error(`of ${count} records, ${added.length} are untried`);
  return added;
}

/** What is sent of a record that is to be attempted, apart from the headers of the attempt. */
export async function requestOf(
  { store }: OutboxUnderTest,
  record: DueRecord,
): Promise<{ headers: Readonly<Record<string, string>>; body: string }> {
  const loaded = await store.load(record);
  if (!loaded) throw new Error(`nothing is to be sent of ${record.event_id}`);
  return { headers: loaded.headers, body: loaded.body.toString() };
}

/** Commits one event and reads it. */
export async function appendedOne(outbox: OutboxUnderTest): Promise<DueRecord> {
  return (await appended(outbox, 1))[0] as DueRecord;
}

export function idsOf(records: { event_id: string }[]): string[] {
  return records.map(({ event_id }) => event_id);
}
