import type { UndeliveredState } from '../contract/words.ts';
import type { Context } from './context.ts';
import { fullEventId } from './event-id.ts';
import { EXIT, type ExitCode } from './failure.ts';

/** Discards one record; the beginning of its id is enough. Contract section 4, `DELETE /webhook/deliveries/{event_id}`. */
export async function discard(context: Context, event_id: string): Promise<ExitCode> {
  const { sandbox, out, json } = context;
  const id = await fullEventId(context, event_id);
  const path = { event_id: id };
  const result = await sandbox.DELETE('/api/v1/webhook/deliveries/{event_id}', { path });
  await out.line(json ? JSON.stringify(result) : `${id} is discarded`);
  return EXIT.ok;
}

/** Discards all records in a state. Contract section 4, `DELETE /webhook/deliveries?state=failed`. */
export async function discardAll(
  { sandbox, out, json }: Context,
  state: UndeliveredState,
): Promise<ExitCode> {
  const result = await sandbox.DELETE('/api/v1/webhook/deliveries', { query: { state } });
  await out.line(json ? JSON.stringify(result) : `${result.discarded} ${state} records are discarded`);
  return EXIT.ok;
}
