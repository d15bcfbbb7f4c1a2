import { type HttpApp, success } from '../../base/http/app.ts';
import { enumParam, integerParam, queryOf } from '../../base/http/query.ts';
import { LIST_LIMIT, LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import { DELIVERY_STATES, FINAL_STATES } from '../../contract/deliveries.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import { EVENT_TYPES } from '../../contract/events.ts';
import type { Delivery } from '../outbox/delivery.ts';
import { callerOf } from './auth.ts';
import {
  DeliveryData,
  DeliveryPageData,
  DeliveryQuery,
  ReplayedData,
  ReplayQuery,
} from './delivery-schemas.ts';
import type { RouteDoc } from './openapi.ts';

const PATH = '/api/v1/webhooks/deliveries';
const EVENT_ID = /^evt_[0-9a-f-]{36}$/;

interface EventParams {
  event_id: string;
}

/** Registers the routes by which a team sees its part of the manager's outbox. Source: contract section 7, `/webhooks/deliveries…`. */
export function registerDeliveryRoutes(app: HttpApp, delivery: Delivery): void {
  const reading = (doc: RouteDoc) => ({ config: { scope: 'webhooks:read', doc } }) as const;
  const writing = (doc: RouteDoc) => ({ config: { scope: 'sandboxes:write', doc } }) as const;
  const list = { summary: 'List deliveries, newest first', query: DeliveryQuery, data: DeliveryPageData };
  const one = { summary: 'One delivery with its body and attempts', data: DeliveryData };
  const replay = { summary: 'Send a record again', data: DeliveryData };
  const replayAll = {
    summary: 'Send all records in a state again',
    query: ReplayQuery,
    data: ReplayedData,
  };

  app.get(PATH, reading(list), async (request) => {
    const query = queryOf(request.query, ['state', 'event_type', 'limit', 'cursor']);
    return success(
      await delivery.views.list(callerOf(request).team_id, {
        state: enumParam(query.state, 'state', DELIVERY_STATES),
        event_type: enumParam(query.event_type, 'event_type', EVENT_TYPES),
        limit: Math.min(integerParam(query.limit, 'limit') ?? LIST_LIMIT, LIST_LIMIT_MAX),
        before_id: cursorOf(query.cursor),
      }),
    );
  });

  app.get<{ Params: EventParams }>(`${PATH}/:event_id`, reading(one), async (request) => {
    const { event_id } = request.params;
    return success(await found(delivery, callerOf(request).team_id, event_id));
  });

  app.post<{ Params: EventParams }>(`${PATH}/:event_id/replay`, writing(replay), async (request) => {
    const { team_id } = callerOf(request);
    const { event_id } = request.params;
    await found(delivery, team_id, event_id);
    await delivery.replay(team_id, event_id);
    return success(await found(delivery, team_id, event_id));
  });

  app.post(`${PATH}/replay`, writing(replayAll), async (request) => {
    const { state: given } = queryOf(request.query, ['state']);
    const state = enumParam(given, 'state', FINAL_STATES);
    if (!state) throw invalidField('state', `is required, one of ${FINAL_STATES.join(', ')}`);
    return success({ replayed: await delivery.replayAll(callerOf(request).team_id, state) });
  });
}

async function found(delivery: Delivery, team_id: string, event_id: string) {
  const record = EVENT_ID.test(event_id) ? await delivery.views.find(team_id, event_id) : null;
  if (!record) throw new ApiError('not_found', `There is no record ${event_id}.`);
  return record;
}

/** Parses what an earlier page returned as `next_cursor`. */
function cursorOf(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (!/^[1-9]\d{0,14}$/.test(value)) throw invalidField('cursor', 'is invalid');
  return Number(value);
}
