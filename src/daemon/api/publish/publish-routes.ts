import { idempotencyKeyOf } from '../../../base/http/idempotency-key.ts';
import { traceparentOf } from '../../../base/http/trace-context.ts';
import { WEBHOOK_TEST_WAIT_MS } from '../../../contract/defaults.ts';
import type { DeliveryDetail } from '../../../contract/deliveries.ts';
import { ApiError } from '../../../contract/errors.ts';
import type { Dispatcher } from '../../../outbox/dispatcher.ts';
import type { OutboxClient } from '../../../outbox/sqlite/client.ts';
import type { Publisher } from '../../publisher.ts';
import type { DaemonHandlers } from '../handlers.ts';
import { payloadText } from './payload.ts';

/** The slice of the daemon that publishing uses. */
export interface PublishContext {
  readonly publisher: Pick<Publisher, 'publish'>;
  readonly store: Pick<OutboxClient, 'find'>;
  readonly dispatcher: Pick<Dispatcher, 'attempted'> | null;
}

const TEST_PAYLOAD = '{"test":true}';

/** The handlers that publish. Contract section 4, `POST /webhook/publish` and `POST /webhook/test`. */
export function publishHandlers(daemon: PublishContext) {
  return {
    async publishEvent({ body, request: { headers } }) {
      if (body === undefined) throw new ApiError('unsupported_media_type');
      return daemon.publisher.publish(
        payloadText(body as Buffer),
        idempotencyKeyOf(headers['idempotency-key']),
        traceparentOf(headers.traceparent),
      );
    },

    async publishTestEvent() {
      const { publisher, store, dispatcher } = daemon;
      const { event_id } = await publisher.publish(TEST_PAYLOAD);
      await dispatcher?.attempted(event_id, WEBHOOK_TEST_WAIT_MS);
      return (await store.find(event_id)) as DeliveryDetail;
    },
  } satisfies Partial<DaemonHandlers>;
}
