import { ApiError, invalidField, stillPending } from '../../contract/errors.ts';
import { endpointOf } from '../outbox/endpoint-key.ts';
import type { ManagerOutbox } from '../outbox/manager-outbox.ts';
import { callerOf } from './auth.ts';
import type { ApiHandlers } from './routes.ts';

const EVENT_ID = /^evt_[0-9a-f-]{36}$/;

/** The routes by which a team sees its part of the manager's outbox. Source: contract section 7, `/webhooks/deliveries…`. */
export function teamDeliveryHandlers(delivery: ManagerOutbox) {
  return {
    async listTeamDeliveries({ query, request }) {
      const { cursor, endpoint, ...filter } = query;
      return delivery.views.list(callerOf(request).team_id, {
        ...filter,
        ...(endpoint === undefined ? {} : { endpoint: endpointIn(endpoint) }),
        before_id: cursor === undefined ? cursor : Number(cursor),
      });
    },

    getTeamDelivery: ({ params, request }) => found(delivery, callerOf(request).team_id, params.event_id),

    async replayTeamDelivery({ params: { event_id }, request }) {
      const { team_id } = callerOf(request);
      await found(delivery, team_id, event_id);
      await delivery.replay(team_id, event_id);
      return found(delivery, team_id, event_id);
    },

    async replayTeamDeliveries({ query, request }) {
      return { replayed: await delivery.replayAll(callerOf(request).team_id, query.state) };
    },

    async discardTeamDelivery({ params: { event_id }, request }) {
      const { team_id } = callerOf(request);
      await found(delivery, team_id, event_id);
      if (!(await delivery.discard(team_id, event_id))) throw stillPending();
      return { discarded: 1 };
    },

    async discardTeamDeliveries({ query, request }) {
      return { discarded: await delivery.discardAll(callerOf(request).team_id, query.state) };
    },
  } satisfies Partial<ApiHandlers>;
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
