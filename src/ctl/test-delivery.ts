import type { DeliveryDetail } from '../contract/deliveries.ts';
import type { Context } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';
import { printDelivery } from './show.ts';

/** Publishes a test event and shows its delivery; exit code 0 if it was delivered. Contract section 4, `POST /webhook/test`. */
export async function testDelivery(context: Context): Promise<ExitCode> {
  const delivery = await context.client.call<DeliveryDetail>('POST', '/webhook/test');
  await printDelivery(context, delivery);
  return delivery.state === 'delivered' ? EXIT.ok : EXIT.failed;
}
