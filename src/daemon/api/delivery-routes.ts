import type { HttpApp } from '../../base/http/app.ts';
import { success } from '../../base/http/app.ts';
import { enumParam, integerParam, queryOf } from '../../base/http/query.ts';
import { LIST_LIMIT, LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import { DELIVERY_STATES, type DeliveryState, FINAL_STATES } from '../../contract/deliveries.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import { EVENT_TYPES } from '../../contract/events.ts';
import type { Dispatcher } from '../../outbox/dispatcher.ts';
import type { OutboxClient } from '../../outbox/sqlite/client.ts';
import type { Publisher } from '../publisher.ts';

/** The slice of the daemon that the delivery routes use. */
export interface DeliveryContext {
  readonly publisher: Pick<Publisher, 'has_webhook'>;
  readonly store: Pick<OutboxClient, 'list' | 'find' | 'replay' | 'replayAll'>;
  readonly dispatcher: Pick<Dispatcher, 'refresh'> | null;
}

interface EventParams {
  event_id: string;
}

/** Adds the routes that list, show and replay deliveries. Source: contract section 4, rows `/webhook/deliveries…`. */
export function registerDaemonDeliveryRoutes(app: HttpApp, daemon: DeliveryContext): void {
  app.get('/api/v1/webhook/deliveries', async (request) => {
    const query = queryOf(request.query, ['state', 'event_type', 'limit', 'cursor']);
    return success(
      await daemon.store.list({
        state: enumParam(query.state, 'state', DELIVERY_STATES),
        event_type: enumParam(query.event_type, 'event_type', EVENT_TYPES),
        limit: Math.min(integerParam(query.limit, 'limit') ?? LIST_LIMIT, LIST_LIMIT_MAX),
        before_id: cursorOf(query.cursor),
      }),
    );
  });

  app.get<{ Params: EventParams }>('/api/v1/webhook/deliveries/:event_id', async (request) => {
    const delivery = await daemon.store.find(request.params.event_id);
    if (!delivery) throw notFound(request.params.event_id);
    return success(delivery);
  });

  app.post<{ Params: EventParams }>('/api/v1/webhook/deliveries/:event_id/replay', async (request) => {
    const { event_id } = request.params;
    checkWebhook(daemon);
    const delivery = await daemon.store.find(event_id);
    if (!delivery) throw notFound(event_id);
    if (delivery.state === 'foreign') {
      throw new ApiError('conflict', 'The record belongs to another sandbox and is never sent.');
    }
    await daemon.store.replay(event_id);
    daemon.dispatcher?.refresh();
    return success(await daemon.store.find(event_id));
  });

  app.post('/api/v1/webhook/deliveries/replay', async (request) => {
    const query = queryOf(request.query, ['state']);
    const state = enumParam(query.state as DeliveryState | undefined, 'state', FINAL_STATES);
    if (!state) throw invalidField('state', `is required: one of ${FINAL_STATES.join(', ')}`);
    checkWebhook(daemon);
    const replayed = await daemon.store.replayAll(state);
    daemon.dispatcher?.refresh();
    return success({ replayed });
  });
}

function checkWebhook(daemon: DeliveryContext): void {
  if (!daemon.publisher.has_webhook) throw new ApiError('webhook_not_configured');
}

function notFound(event_id: string): ApiError {
  return new ApiError('not_found', `No record has the event id ${event_id}.`);
}

/** The record id in a cursor, as an answer gave it in `next_cursor`. */
function cursorOf(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (!/^[1-9]\d{0,14}$/.test(value)) throw invalidField('cursor', 'is malformed');
  return Number(value);
}
