import { systemClock } from '../base/clock.ts';
import { LIST_LIMIT_MAX } from '../contract/defaults.ts';
import type { DeliveryPage, DeliveryView } from '../contract/deliveries.ts';
import { DELIVERY_ROWS } from './api/row-kinds.ts';
import { soundRows } from './api/sound-rows.ts';
import type { Context } from './context.ts';
import { deliveryTable } from './delivery-table.ts';
import { EXIT, Failure } from './failure.ts';

const PREFIX = 'evt_';
/** The beginning of an id; whatever else was typed is sent as it is, and refused by the daemon. */
const BEGINNING = /^(?:evt_)?([0-9a-f][0-9a-f-]{3,34})$/;
/** Pages that are searched: 100 000 events, more than a healthy outbox keeps. */
const PAGES_MAX = 100;
const SHOWN_MAX = 10;

/**
 * The event id that begins with a text of at least four hex digits, such as the one that `deliveries` shows; `evt_` may
 * be left out. A text that is no such beginning is returned as it is. Lists the events on stderr and throws `Failure`
 * where several begin so; throws it where none does.
 */
export async function fullEventId(context: Context, text: string): Promise<string> {
  const [, digits] = BEGINNING.exec(text) ?? [];
  if (digits === undefined) return text;
  const beginning = PREFIX + digits;
  const found = await eventsBeginning(context, beginning);
  const [only] = found;
  if (only === undefined) throw new Failure(EXIT.failed, `no event id begins with ${beginning}`);
  if (found.length === 1) return only.event_id;
  await context.err.lines(deliveryTable(found.slice(0, SHOWN_MAX), context.err, systemClock.wallMs()));
  throw new Failure(EXIT.failed, `${found.length} event ids begin with ${beginning}: give more of it`);
}

async function eventsBeginning({ sandbox }: Context, beginning: string): Promise<DeliveryView[]> {
  const found: DeliveryView[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES_MAX; page++) {
    const { deliveries, next_cursor }: DeliveryPage = await sandbox.GET('/api/v1/webhook/deliveries', {
      query: { limit: LIST_LIMIT_MAX, cursor: cursor ?? undefined },
    });
    const { rows } = await soundRows<DeliveryView>(deliveries, DELIVERY_ROWS);
    found.push(...rows.filter(({ event_id }) => event_id.startsWith(beginning)));
    // Ids begin with the time of their event, and the list is newest first.
    const is_past = (rows.at(-1)?.event_id ?? '') < beginning;
    if (next_cursor === null || (is_past && found.length > 0)) break;
    cursor = next_cursor;
  }
  return found;
}
