import type { HttpApp } from '../../base/http/app.ts';
import { success } from '../../base/http/app.ts';
import { ApiError, stillPending } from '../../contract/errors.ts';
import { DeliveryQuery, DiscardQuery, EventParams, ReplayQuery } from '../../contract/schema/deliveries.ts';
import type { Dispatcher } from '../../outbox/dispatcher.ts';
import type { OutboxClient } from '../../outbox/sqlite/client.ts';
import type { Publisher } from '../publisher.ts';

/** The slice of the daemon that the delivery routes use. */
export interface DeliveryContext {
  readonly publisher: Pick<Publisher, 'has_webhook'>;
  readonly store: Pick<OutboxClient, 'list' | 'find' | 'replay' | 'replayAll' | 'discard' | 'discardAll'>;
  readonly dispatcher: Pick<Dispatcher, 'refresh'> | null;
}

const list = { querystring: DeliveryQuery };
const one = { params: EventParams };
const replayAll = { querystring: ReplayQuery };
const discardAll = { querystring: DiscardQuery };

/** Adds the routes that list, show, replay and discard deliveries. Source: contract section 4, rows `/webhook/deliveries…`. */
export function registerDaemonDeliveryRoutes(app: HttpApp, daemon: DeliveryContext): void {
  app.get('/api/v1/webhook/deliveries', { schema: list }, async ({ query }) => {
    const { cursor, ...filter } = query;
    return success(
      await daemon.store.list({ ...filter, before_id: cursor === undefined ? cursor : Number(cursor) }),
    );
  });

  app.get('/api/v1/webhook/deliveries/:event_id', { schema: one }, async ({ params }) => {
    const delivery = await daemon.store.find(params.event_id);
    if (!delivery) throw notFound(params.event_id);
    return success(delivery);
  });

  app.post('/api/v1/webhook/deliveries/:event_id/replay', { schema: one }, async ({ params }) => {
    const { event_id } = params;
    checkWebhook(daemon);
    const delivery = await daemon.store.find(event_id);
    if (!delivery) throw notFound(event_id);
    if (delivery.state === 'foreign') throw foreign();
    await daemon.store.replay(event_id);
    daemon.dispatcher?.refresh();
    return success(await daemon.store.find(event_id));
  });

  app.post('/api/v1/webhook/deliveries/replay', { schema: replayAll }, async ({ query }) => {
    checkWebhook(daemon);
    const replayed = await daemon.store.replayAll(query.state);
    daemon.dispatcher?.refresh();
    return success({ replayed });
  });

  app.delete('/api/v1/webhook/deliveries/:event_id', { schema: one }, async ({ params }) => {
    const { event_id } = params;
    const outcome = await daemon.store.discard(event_id);
    if (outcome === 'absent') throw notFound(event_id);
    if (outcome === 'foreign') throw foreign();
    if (outcome === 'pending') throw stillPending();
    return success({ discarded: 1 });
  });

  app.delete('/api/v1/webhook/deliveries', { schema: discardAll }, async ({ query }) => {
    return success({ discarded: await daemon.store.discardAll(query.state) });
  });
}

function foreign(): ApiError {
  return new ApiError('conflict', 'The record belongs to another sandbox and is never sent.');
}

function checkWebhook(daemon: DeliveryContext): void {
  if (!daemon.publisher.has_webhook) throw new ApiError('webhook_not_configured');
}

function notFound(event_id: string): ApiError {
  return new ApiError('not_found', `No record has the event id ${event_id}.`);
}
