import type { DeliveryDetail } from '../../contract/deliveries.ts';
import { ApiError, stillPending } from '../../contract/errors.ts';
import type { Dispatcher } from '../../outbox/dispatcher.ts';
import type { OutboxClient } from '../../outbox/sqlite/client.ts';
import type { Publisher } from '../publisher.ts';
import type { DaemonHandlers } from './handlers.ts';

/** The slice of the daemon that the delivery routes use. */
export interface DeliveryContext {
  readonly publisher: Pick<Publisher, 'has_webhook'>;
  readonly store: Pick<OutboxClient, 'list' | 'find' | 'replay' | 'replayAll' | 'discard' | 'discardAll'>;
  readonly dispatcher: Pick<Dispatcher, 'refresh'> | null;
}

/** The handlers that list, show, replay and discard deliveries. Contract section 4, rows `/webhook/deliveries…`. */
export function deliveryHandlers(daemon: DeliveryContext) {
  return {
    async listDeliveries({ query: { cursor, ...filter } }) {
      return daemon.store.list({ ...filter, before_id: cursor === undefined ? cursor : Number(cursor) });
    },

    async getDelivery({ params: { event_id } }) {
      return found(await daemon.store.find(event_id), event_id);
    },

    async replayDelivery({ params: { event_id } }) {
      checkWebhook(daemon);
      const { state } = found(await daemon.store.find(event_id), event_id);
      if (state === 'foreign') throw foreign();
      await daemon.store.replay(event_id);
      daemon.dispatcher?.refresh();
      return found(await daemon.store.find(event_id), event_id);
    },

    async replayDeliveries({ query: { state } }) {
      checkWebhook(daemon);
      const replayed = await daemon.store.replayAll(state);
      daemon.dispatcher?.refresh();
      return { replayed };
    },

    async discardDelivery({ params: { event_id } }) {
      const outcome = await daemon.store.discard(event_id);
      if (outcome === 'absent') throw notFound(event_id);
      if (outcome === 'foreign') throw foreign();
      if (outcome === 'pending') throw stillPending();
      return { discarded: 1 };
    },

    async discardDeliveries({ query: { state } }) {
      return { discarded: await daemon.store.discardAll(state) };
    },
  } satisfies Partial<DaemonHandlers>;
}

function found(delivery: DeliveryDetail | null, event_id: string): DeliveryDetail {
  if (!delivery) throw notFound(event_id);
  return delivery;
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
