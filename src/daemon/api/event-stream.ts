import type { Clock } from '../../base/clock.ts';
import { SseResponse, untilDisconnect } from '../../base/http/sse-response.ts';
import { invalidField } from '../../contract/errors.ts';
import type { OutboxClient } from '../../outbox/sqlite/client.ts';
import type { LoadedRecord, StreamRecord } from '../../outbox/store.ts';
import type { DaemonHandlers } from './handlers.ts';

/** The slice of the daemon that the event stream uses. */
export interface EventStreamContext {
  readonly clock: Clock;
  readonly store: Pick<OutboxClient, 'lastSequence' | 'nextCommit' | 'after'>;
}

/** The most records read at a time for one follower. */
const PAGE_RECORDS = 200;

/**
 * The handler of `GET /events/stream`, which sends every record when it is committed. A `Last-Event-ID` above the last
 * sequence, such as one of a fork's parent, starts with the next record. Contract section 4.
 */
export function eventStreamHandlers(daemon: EventStreamContext) {
  return {
    async streamEvents({ request, reply }) {
      const { store } = daemon;
      const seen = lastEventId(request.headers['last-event-id']);
      const last = await store.lastSequence();
      const from = Math.min(seen ?? last, last);
      const writer = new SseResponse(request, reply, daemon.clock);
      await follow(daemon, from, writer).catch(() => writer.cut());
    },
  } satisfies Partial<DaemonHandlers>;
}

/**
 * Sends the stored records after `sequence`, then waits for commits. The records of a commit are sent from memory if
 * they directly follow the last one sent; otherwise they are read. A slow follower delays only itself.
 */
async function follow({ store }: EventStreamContext, sequence: number, writer: SseResponse): Promise<void> {
  let last = sequence;
  // Shared by all followers, and only what is being sent is made into text for each.
  let added: LoadedRecord[] = [];
  while (!writer.gone.aborted) {
    const arrived = store.nextCommit();
    const is_next = added[0] !== undefined && sequenceOf(added[0]) === last + 1;
    const records = is_next ? added : await store.after(last, PAGE_RECORDS);
    for (const record of records) {
      const { sequence, event_type, body } = 'headers' in record ? streamed(record) : record;
      last = sequence;
      await writer.write({ id: String(sequence), event: event_type, data: body });
      if (writer.gone.aborted) return;
    }
    const is_behind = !is_next && records.length > 0;
    added = is_behind ? [] : ((await untilDisconnect(arrived, writer.gone)) ?? []);
  }
}

function streamed(record: LoadedRecord): StreamRecord {
  return { sequence: sequenceOf(record), event_type: record.event_type, body: record.body.toString() };
}

function sequenceOf({ headers }: LoadedRecord): number {
  return Number(headers['ce-sequence']);
}

function lastEventId(value: string | string[] | undefined): number | null {
  if (value === undefined) return null;
  if (typeof value !== 'string' || !/^\d{1,15}$/.test(value)) {
    throw invalidField('Last-Event-ID', 'must be a sequence number');
  }
  return Number(value);
}
