import type { DeliveryView, FinalState } from '../contract/deliveries.ts';
import type { Context } from './context.ts';
import { fullEventId } from './event-id.ts';
import { EXIT, type ExitCode } from './failure.ts';
import { deliveryPath } from './show.ts';

/** Makes one record pending again; the beginning of its id is enough. Contract section 4, `POST /webhook/deliveries/{event_id}/replay`. */
export async function replay(context: Context, event_id: string): Promise<ExitCode> {
  const { client, out, json } = context;
  const path = deliveryPath(await fullEventId(context, event_id));
  const delivery = await client.call<DeliveryView>('POST', `${path}/replay`);
  await out.line(json ? JSON.stringify(delivery) : `${delivery.event_id} is ${delivery.state}`);
  return EXIT.ok;
}

/** Makes all records of a state pending again. Contract section 4, `POST /webhook/deliveries/replay`. */
export async function replayAll({ client, out, json }: Context, state: FinalState): Promise<ExitCode> {
  const result = await client.call<{ replayed: number }>('POST', '/webhook/deliveries/replay', {
    query: { state },
  });
  await out.line(json ? JSON.stringify(result) : `${result.replayed} ${state} records are pending again`);
  return EXIT.ok;
}
