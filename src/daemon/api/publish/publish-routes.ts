import type { HttpApp } from '../../../base/http/app.ts';
import { success } from '../../../base/http/app.ts';
import { idempotencyKeyOf } from '../../../base/http/idempotency-key.ts';
import { traceparentOf } from '../../../base/http/trace-context.ts';
import { WEBHOOK_TEST_WAIT_MS } from '../../../contract/defaults.ts';
import type { DeliveryDetail } from '../../../contract/deliveries.ts';
import { ApiError } from '../../../contract/errors.ts';
import type { Dispatcher } from '../../../outbox/dispatcher.ts';
import type { OutboxClient } from '../../../outbox/sqlite/client.ts';
import type { Publisher } from '../../publisher.ts';
import { PUBLISH_PATH } from './direct-publish.ts';
import { payloadText } from './payload.ts';

/** The slice of the daemon that publishing uses. */
export interface PublishContext {
  readonly publisher: Pick<Publisher, 'publish'>;
  readonly store: Pick<OutboxClient, 'find'>;
  readonly dispatcher: Pick<Dispatcher, 'attempted'> | null;
}

const TEST_PAYLOAD = '{"test":true}';

/** Adds `POST /webhook/publish` and `POST /webhook/test`. Source: contract section 4. */
export function registerPublishRoutes(app: HttpApp, daemon: PublishContext): void {
  app.post(PUBLISH_PATH, { config: { is_raw: true } }, async (request, reply) => {
    if (request.body === undefined) {
      throw new ApiError('unsupported_media_type');
    }
    const payload = payloadText(request.body as Buffer);
    const receipt = await daemon.publisher.publish(
      payload,
      idempotencyKeyOf(request.headers['idempotency-key']),
      traceparentOf(request.headers.traceparent),
    );
    reply.code(202);
    return success(receipt);
  });

  app.post('/api/v1/webhook/test', async () => {
    const { publisher, store, dispatcher } = daemon;
    const { event_id } = await publisher.publish(TEST_PAYLOAD);
    await dispatcher?.attempted(event_id, WEBHOOK_TEST_WAIT_MS);
    return success((await store.find(event_id)) as DeliveryDetail);
  });
}
