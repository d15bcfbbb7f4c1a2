import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { WebhookEgress } from '../../contract/egress.ts';
import { Dispatcher } from '../../outbox/dispatcher.ts';
import { EndpointLog, loggedEndpoint } from '../../outbox/endpoint-log.ts';
import { PublishPace } from '../../outbox/publish-pace.ts';
import { UrlSender } from '../../outbox/sender.ts';
import type { OutboxClient } from '../../outbox/sqlite/client.ts';
import type { AddressGuard } from '../../webhook/address-guard.ts';
import { SharedLookup } from '../../webhook/lookup.ts';
import { HttpTransport } from '../../webhook/transport.ts';
import type { DaemonConfig } from '../config.ts';
import type { Metrics } from '../metrics.ts';
import type { Tunnels } from '../tunnels.ts';

/** What a delivery is made of. */
export interface DeliveryParts {
  config: Pick<DaemonConfig, 'delivery_concurrency' | 'attempt_timeout_ms'>;
  log: Log;
  clock: Clock;
  metrics: Metrics;
  store: OutboxClient;
}

/** What an init says of a delivery; see `Initialisation`. */
interface Given {
  webhook_secret: string;
  webhook_guard: AddressGuard | null;
  webhook_egress: WebhookEgress;
}

/** The delivery of a sandbox's events; `tunnels` is null where the daemon connects by itself. Neither is started. */
export interface Delivery {
  dispatcher: Dispatcher;
  tunnels: Tunnels | null;
}

/** Makes the delivery of a sandbox's events to its webhook. */
export async function makeDelivery(
  url: string,
  given: Given,
  { config, log, clock, metrics, store }: DeliveryParts,
): Promise<Delivery> {
  const concurrency = config.delivery_concurrency;
  const { transport, tunnels } = await makeTransport(clock, concurrency, given);
  const endpoint_log = new EndpointLog(log, clock, loggedEndpoint(url) ?? '');
  const pace = new PublishPace(concurrency);
  const dispatcher = new Dispatcher(
    { concurrency },
    {
      store,
      sender: new UrlSender(url, given.webhook_secret, config.attempt_timeout_ms, transport),
      clock,
      log,
      onAttempt: (report) => {
        pace.note(report.duration_ms);
        metrics.observeAttempt(report, clock.wallMs());
        endpoint_log.note(dispatcher.endpointHealth().healthy, report);
      },
    },
  );
  store.paceAppends((waiting) => pace.take(waiting, dispatcher.is_busy));
  return { dispatcher, tunnels };
}

/** What tunnels need is loaded only where there are any. */
async function makeTransport(clock: Clock, connections: number, given: Given) {
  if (given.webhook_egress === 'direct') {
    const lookup = new SharedLookup(given.webhook_guard);
    return { transport: new HttpTransport(clock, connections, lookup), tunnels: null };
  }
  const [{ Tunnels }, { tunnelled }] = await Promise.all([
    import('../tunnels.ts'),
    import('../../webhook/tunnelled.ts'),
  ]);
  const tunnels = new Tunnels(clock);
  const transport = new HttpTransport(clock, connections, new SharedLookup(), (secure) =>
    tunnelled(clock, tunnels.open, secure),
  );
  return { transport, tunnels };
}
