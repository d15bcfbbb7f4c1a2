import type {
  DeliveryDetail,
  DeliveryPage,
  DeliveryView,
  FinalState,
  OfSandbox,
} from '../../contract/deliveries.ts';
import { call } from './http.ts';
import type { Place } from './place.ts';

/** An entry of either outbox; only a manager's names its sandbox. */
export type Delivery = DeliveryView & { sandbox_id?: string };
/** One record with its body and attempts. */
export type DeliveryWhole = DeliveryDetail & Partial<OfSandbox<object>>;

/** What a list of deliveries is narrowed to. */
export interface DeliveryFilter {
  state: string | null;
  event_type: string | null;
  cursor?: string | null;
  limit?: number;
}

/** Where records lie: in a sandbox's own outbox, or, as null, in the manager's. */
export type Outbox = Place | null;

const pathOf = (outbox: Outbox) =>
  outbox === null ? '/webhooks/deliveries' : `${outbox.path}/webhook/deliveries`;

/** The most entries of a page. */
const PAGE_MAX = 1_000;

/** The routes of deliveries. Contract section 4, "Deliveries", and section 7, "Other routes". */
export const deliveries = {
  list: (outbox: Outbox, filter: DeliveryFilter, signal?: AbortSignal) =>
    call<DeliveryPage<Delivery>>('GET', pathOf(outbox), {
      query: { ...filter },
      ...(signal ? { signal } : {}),
    }),
  one: (outbox: Outbox, event_id: string, signal: AbortSignal) =>
    call<DeliveryWhole>('GET', `${pathOf(outbox)}/${encodeURIComponent(event_id)}`, { signal }),
  replay: (outbox: Outbox, event_id: string) =>
    call<DeliveryWhole>('POST', `${pathOf(outbox)}/${encodeURIComponent(event_id)}/replay`),
  replayAll: (outbox: Outbox, state: FinalState) =>
    call<{ replayed: number }>('POST', `${pathOf(outbox)}/replay`, { query: { state } }),
  /** How many records are in a state, by counting its pages; calls `onCount` after each. */
  async count(
    outbox: Outbox,
    state: FinalState,
    signal: AbortSignal,
    onCount: (count: number) => void,
  ): Promise<number> {
    let cursor: string | null = null;
    let total = 0;
    do {
      const page: DeliveryPage<Delivery> = await deliveries.list(
        outbox,
        { state, event_type: null, cursor, limit: PAGE_MAX },
        signal,
      );
      total += page.deliveries.length;
      cursor = page.next_cursor;
      onCount(total);
    } while (cursor !== null);
    return total;
  },
  /** Publishes a test event in a sandbox of one's own daemon, and answers with its delivery. */
  test: () => call<DeliveryWhole>('POST', '/webhook/test'),
};
