import type { paths as DaemonPaths } from '../../client/openapi/daemon-api.ts';
import type { paths } from '../../client/openapi/manager-api.ts';
import type { AnswerOf, InitOf } from '../../client/routes.ts';
import type { FinalState } from '../../contract/words.ts';
import { manager } from './client.ts';
import type { Place } from './place.ts';

const OWN = '/api/v1/webhook/deliveries';
const TEAM = '/api/v1/webhooks/deliveries';

/** A page of either outbox; only a manager's names the sandboxes of its entries. */
export interface DeliveryPage {
  deliveries: Delivery[];
  next_cursor: string | null;
}
/** An entry of either outbox. */
export type Delivery = AnswerOf<DaemonPaths, typeof OWN, 'get'>['deliveries'][number] & {
  sandbox_id?: string;
};
/** One record with its body and attempts. */
export type DeliveryWhole = AnswerOf<DaemonPaths, `${typeof OWN}/{event_id}`, 'get'> & {
  sandbox_id?: string;
};

/** What a list of deliveries is narrowed to; a sandbox and an endpoint only in the manager's outbox. */
export type DeliveryFilter = NonNullable<InitOf<paths, typeof TEAM, 'get'>['query']>;

/** Where records lie: in a sandbox's own outbox, or, as null, in the manager's. */
export type Outbox = Place | null;

/** The routes of deliveries. Contract section 4, "Deliveries", and section 7, "Other routes". */
export const deliveries = {
  list: (outbox: Outbox, query: DeliveryFilter, signal: AbortSignal): Promise<DeliveryPage> =>
    outbox === null ? manager.GET(TEAM, { query, signal }) : outbox.sandbox.GET(OWN, { query, signal }),
  one: (outbox: Outbox, event_id: string, signal: AbortSignal): Promise<DeliveryWhole> =>
    outbox === null
      ? manager.GET(`${TEAM}/{event_id}`, { path: { event_id }, signal })
      : outbox.sandbox.GET(`${OWN}/{event_id}`, { path: { event_id }, signal }),
  replay: (outbox: Outbox, event_id: string, signal: AbortSignal): Promise<DeliveryWhole> =>
    outbox === null
      ? manager.POST(`${TEAM}/{event_id}/replay`, { path: { event_id }, signal })
      : outbox.sandbox.POST(`${OWN}/{event_id}/replay`, { path: { event_id }, signal }),
  replayAll: (outbox: Outbox, state: FinalState) =>
    outbox === null
      ? manager.POST(`${TEAM}/replay`, { query: { state } })
      : outbox.sandbox.POST(`${OWN}/replay`, { query: { state } }),
};
