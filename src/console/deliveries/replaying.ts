import { LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import { type DeliveryFilter, deliveries, type Outbox } from '../api/deliveries.ts';

/** Browsers have few connections, and others wait for them. */
const AT_ONCE = 4;

/** The ids of the records that match, a page at a time, newest first. */
export async function* matching(
  outbox: Outbox,
  filter: DeliveryFilter,
  signal: AbortSignal,
): AsyncGenerator<string[], void> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = { ...filter, limit: LIST_LIMIT_MAX, ...(cursor === undefined ? {} : { cursor }) };
    const page = await deliveries.list(outbox, query, signal);
    yield page.deliveries.map(({ event_id }) => event_id);
    cursor = page.next_cursor;
  }
}

/**
 * Replays records, the last of the list first, and takes them from it: what is left when it rejects has not been done. Calls
 * `onDone` with how many are left.
 */
export async function replayEach(
  outbox: Outbox,
  event_ids: string[],
  signal: AbortSignal,
  onDone: (left: number) => void,
): Promise<void> {
  while (event_ids.length > 0) {
    signal.throwIfAborted();
    const some = event_ids.slice(-AT_ONCE);
    await Promise.all(some.map((event_id) => deliveries.replay(outbox, event_id, signal)));
    event_ids.splice(-some.length);
    onDone(event_ids.length);
  }
}
