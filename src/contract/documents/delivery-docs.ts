import {
  DeliveryData,
  DeliveryPageData,
  DeliveryQuery,
  DiscardedData,
  DiscardQuery,
  ReplayedData,
  ReplayQuery,
} from '../schema/deliveries.ts';
import { RESUMED, type RouteDocs, tagged } from './route-doc.ts';

const ONE = '/webhook/deliveries/:event_id';

/** What both programs document of a sandbox's deliveries and events. Contract section 4, "Deliveries". */
export const DELIVERY_DOCS: RouteDocs = {
  ...tagged('deliveries', {
    'GET /webhook/deliveries': {
      operation_id: 'listDeliveries',
      summary: "List a sandbox's deliveries, newest first",
      query: DeliveryQuery,
      data: DeliveryPageData,
    },
    [`GET ${ONE}`]: {
      operation_id: 'getDelivery',
      summary: 'Get one delivery with its body and attempts',
      data: DeliveryData,
      errors: ['not_found'],
    },
    [`POST ${ONE}/replay`]: {
      operation_id: 'replayDelivery',
      summary: 'Send a record again',
      data: DeliveryData,
      errors: ['not_found', 'conflict', 'webhook_not_configured'],
    },
    'POST /webhook/deliveries/replay': {
      operation_id: 'replayDeliveries',
      summary: 'Send all records in a state again',
      query: ReplayQuery,
      data: ReplayedData,
      errors: ['webhook_not_configured'],
    },
    [`DELETE ${ONE}`]: {
      operation_id: 'discardDelivery',
      summary: 'Discard a record that is not sent any more',
      data: DiscardedData,
      errors: ['not_found', 'conflict'],
    },
    'DELETE /webhook/deliveries': {
      operation_id: 'discardDeliveries',
      summary: 'Discard all records in a state',
      query: DiscardQuery,
      data: DiscardedData,
    },
  }),
  ...tagged('events', {
    'GET /events/stream': {
      operation_id: 'streamEvents',
      summary: "Follow a sandbox's records as they are committed",
      media: 'text/event-stream',
      headers: RESUMED,
    },
  }),
};
