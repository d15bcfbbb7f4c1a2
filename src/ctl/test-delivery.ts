import type { DeliveryDetail } from '../contract/deliveries.ts';
import type { Context } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';
import { printDelivery } from './show.ts';

/** Has a test event delivered and shows what became of it: 0 where it was delivered. Source: contract section 4. */
export async function testDelivery(context: Context): Promise<ExitCode> {
  const delivery = await context.client.call<DeliveryDetail>('POST', '/webhook/test');
  await printDelivery(context, delivery);
  return delivery.state === 'delivered' ? EXIT.ok : EXIT.failed;
}
