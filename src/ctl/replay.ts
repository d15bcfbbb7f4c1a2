import type { FinalState } from '../contract/words.ts';
import type { Context } from './context.ts';
import { fullEventId } from './event-id.ts';
import { EXIT, type ExitCode } from './failure.ts';

/** Makes one record pending again; the beginning of its id is enough. Contract section 4, `POST /webhook/deliveries/{event_id}/replay`. */
export async function replay(context: Context, event_id: string): Promise<ExitCode> {
  const { sandbox, out, json } = context;
  const path = { event_id: await fullEventId(context, event_id) };
  const delivery = await sandbox.POST('/api/v1/webhook/deliveries/{event_id}/replay', { path });
  await out.line(json ? JSON.stringify(delivery) : `${delivery.event_id} is ${delivery.state}`);
  return EXIT.ok;
}

/** Makes all records of a state pending again. Contract section 4, `POST /webhook/deliveries/replay`. */
export async function replayAll({ sandbox, out, json }: Context, state: FinalState): Promise<ExitCode> {
  const result = await sandbox.POST('/api/v1/webhook/deliveries/replay', { query: { state } });
  await out.line(json ? JSON.stringify(result) : `${result.replayed} ${state} records are pending again`);
  return EXIT.ok;
}
