import type { DaemonContext } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';
import { printDelivery } from './show.ts';

/** Publishes a test event and shows its delivery; exit code 0 if it was delivered. Contract section 4, `POST /webhook/test`. */
export async function testDelivery(context: DaemonContext): Promise<ExitCode> {
  const delivery = await context.daemon.POST('/api/v1/webhook/test');
  await printDelivery(context, delivery);
  return delivery.state === 'delivered' ? EXIT.ok : EXIT.failed;
}
