import { type HttpApp, success } from '../../base/http/app.ts';
import type { RouteDoc } from '../../contract/documents/route-doc.ts';
import { ApiError, invalidField, stillPending } from '../../contract/errors.ts';
import {
  DiscardedData,
  DiscardQuery,
  EventParams,
  ReplayedData,
  ReplayQuery,
  TeamDeliveryData,
  TeamDeliveryPageData,
  TeamDeliveryQuery,
} from '../../contract/schema/deliveries.ts';
import { endpointOf } from '../outbox/endpoint-key.ts';
import type { ManagerOutbox } from '../outbox/manager-outbox.ts';
import { callerOf } from './auth.ts';

const PATH = '/api/v1/webhooks/deliveries';
const tag = 'deliveries' as const;
const DOCS = {
  list: {
    operation_id: 'listTeamDeliveries',
    tag,
    summary: "List the team's deliveries, newest first",
    data: TeamDeliveryPageData,
  },
  one: {
    operation_id: 'getTeamDelivery',
    tag,
    summary: "Get one of the team's deliveries with its body and attempts",
    data: TeamDeliveryData,
    errors: ['not_found'],
  },
  replay: {
    operation_id: 'replayTeamDelivery',
    tag,
    summary: "Send one of the team's records again",
    data: TeamDeliveryData,
    errors: ['not_found', 'conflict'],
  },
  replayAll: {
    operation_id: 'replayTeamDeliveries',
    tag,
    summary: "Send all of the team's records in a state again",
    data: ReplayedData,
  },
  discard: {
    operation_id: 'discardTeamDelivery',
    tag,
    summary: "Discard one of the team's records that is not sent any more",
    data: DiscardedData,
    errors: ['not_found', 'conflict'],
  },
  discardAll: {
    operation_id: 'discardTeamDeliveries',
    tag,
    summary: "Discard all of the team's records in a state",
    data: DiscardedData,
  },
} as const;
const EVENT_ID = /^evt_[0-9a-f-]{36}$/;

/** Registers the routes by which a team sees its part of the manager's outbox. Source: contract section 7, `/webhooks/deliveries…`. */
export function registerDeliveryRoutes(app: HttpApp, delivery: ManagerOutbox): void {
  const reading = (doc: RouteDoc) => ({ scope: 'webhooks:read', doc }) as const;
  const writing = (doc: RouteDoc) => ({ scope: 'sandboxes:write', doc }) as const;

  const list = { config: reading(DOCS.list), schema: { querystring: TeamDeliveryQuery } };
  app.get(PATH, list, async (request) => {
    const { cursor, endpoint, ...filter } = request.query;
    return success(
      await delivery.views.list(callerOf(request).team_id, {
        ...filter,
        ...(endpoint === undefined ? {} : { endpoint: endpointIn(endpoint) }),
        before_id: cursor === undefined ? cursor : Number(cursor),
      }),
    );
  });

  const schema = { params: EventParams };
  app.get(`${PATH}/:event_id`, { config: reading(DOCS.one), schema }, async (request) => {
    const { event_id } = request.params;
    return success(await found(delivery, callerOf(request).team_id, event_id));
  });

  app.post(`${PATH}/:event_id/replay`, { config: writing(DOCS.replay), schema }, async (request) => {
    const { team_id } = callerOf(request);
    const { event_id } = request.params;
    await found(delivery, team_id, event_id);
    await delivery.replay(team_id, event_id);
    return success(await found(delivery, team_id, event_id));
  });

  const all = { config: writing(DOCS.replayAll), schema: { querystring: ReplayQuery } };
  app.post(`${PATH}/replay`, all, async (request) => {
    const { state } = request.query;
    return success({ replayed: await delivery.replayAll(callerOf(request).team_id, state) });
  });

  app.delete(`${PATH}/:event_id`, { config: writing(DOCS.discard), schema }, async (request) => {
    const { team_id } = callerOf(request);
    const { event_id } = request.params;
    await found(delivery, team_id, event_id);
    if (!(await delivery.discard(team_id, event_id))) throw stillPending();
    return success({ discarded: 1 });
  });

  const discarded = { config: writing(DOCS.discardAll), schema: { querystring: DiscardQuery } };
  app.delete(PATH, discarded, async (request) => {
    const { state } = request.query;
    return success({ discarded: await delivery.discardAll(callerOf(request).team_id, state) });
  });
}

function endpointIn(url: string): string {
  if (URL.canParse(url)) return endpointOf(url);
  throw invalidField('endpoint', 'must be a URL');
}

async function found(delivery: ManagerOutbox, team_id: string, event_id: string) {
  const record = EVENT_ID.test(event_id) ? await delivery.views.find(team_id, event_id) : null;
  if (!record) throw new ApiError('not_found', `No record has the event id ${event_id}.`);
  return record;
}
