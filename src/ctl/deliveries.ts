import { systemClock } from '../base/clock.ts';
import { SandboxdError } from '../client/error.ts';
import { LIST_LIMIT_MAX } from '../contract/defaults.ts';
import type { DeliveryPage, DeliveryView } from '../contract/deliveries.ts';
import type { EventType } from '../contract/events.ts';
import type { DeliveryState } from '../contract/words.ts';
import { DELIVERY_ROWS } from './api/row-kinds.ts';
import { soundRows, tellLeftOut } from './api/sound-rows.ts';
import type { Context } from './context.ts';
import { deliveryTable } from './delivery-table.ts';
import { EXIT, type ExitCode } from './failure.ts';
import { pause } from './pause.ts';
import type { Output } from './terminal/output.ts';

/** Which records to list; `limit` is the most, from 1. */
export interface DeliveriesOptions {
  state?: DeliveryState | undefined;
  event_type?: EventType | undefined;
  limit: number;
}

const WATCH_INTERVAL_MS = 1_000;

/** Lists records with the state of their delivery, newest first. Contract section 4, `GET /webhook/deliveries`. */
export async function deliveries(context: Context, options: DeliveriesOptions): Promise<ExitCode> {
  const { out, json } = context;
  const page = await list(context, options);
  if (json) {
    await out.line(JSON.stringify(page));
    return EXIT.ok;
  }
  const { rows, left_out } = await soundRows<DeliveryView>(page.deliveries, DELIVERY_ROWS);
  if (page.deliveries.length === 0) await context.err.line('no deliveries');
  else await out.lines(tableOf(rows, out));
  return tellLeftOut(context.err, left_out);
}

/**
 * Lists records every second until `interrupted`: a terminal shows the current table, anything else gets the titles, and
 * one line for each record that is new or has changed. A daemon that stops answering is tried again.
 */
export async function watchDeliveries(
  context: Context,
  options: DeliveriesOptions,
  interrupted: AbortSignal,
): Promise<ExitCode> {
  const { out, err } = context;
  let shown = new Map<string, string>();
  let lost = false;
  let told = '';
  if (out.rows === null && !context.json) await out.line(tableOf([], out)[0] ?? '');
  for (let round = 0; !interrupted.aborted; round++) {
    try {
      const { deliveries } = await list(context, fitting(options, out));
      const { rows, left_out } = await soundRows<DeliveryView>(deliveries, DELIVERY_ROWS);
      lost = false;
      shown = await show(context, rows, shown);
      const text = left_out.join('\n');
      if (text !== told) await tellLeftOut(err, left_out);
      told = text;
    } catch (error) {
      if (!(error instanceof SandboxdError) || error.code !== 'unreachable' || round === 0) throw error;
      if (!lost) await err.line(`${error.message}; retrying`);
      lost = true;
    }
    await pause(WATCH_INTERVAL_MS, interrupted);
  }
  return EXIT.ok;
}

async function show(
  { out, json }: Context,
  deliveries: DeliveryView[],
  shown: Map<string, string>,
): Promise<Map<string, string>> {
  const now = new Map(deliveries.map((delivery) => [delivery.event_id, JSON.stringify(delivery)]));
  if (out.rows !== null && !json) {
    await out.screen(tableOf(deliveries, out));
    return now;
  }
  for (const delivery of deliveries.toReversed()) {
    const text = now.get(delivery.event_id) ?? '';
    if (shown.get(delivery.event_id) === text) continue;
    await out.line(json ? text : (tableOf([delivery], out)[1] ?? ''));
  }
  return now;
}

function tableOf(deliveries: readonly DeliveryView[], out: Output): string[] {
  return deliveryTable(deliveries, out, systemClock.wallMs());
}

/** On a terminal at most as many as it has lines, less the title and the cursor's line. */
function fitting(options: DeliveriesOptions, out: Output): DeliveriesOptions {
  return out.rows === null
    ? options
    : { ...options, limit: Math.max(1, Math.min(options.limit, out.rows - 2)) };
}

/** Up to `limit` records, over several pages where necessary. */
async function list({ sandbox }: Context, options: DeliveriesOptions): Promise<DeliveryPage> {
  const deliveries: DeliveryView[] = [];
  let cursor: string | null = null;
  do {
    const page: DeliveryPage = await sandbox.GET('/api/v1/webhook/deliveries', {
      query: {
        state: options.state,
        event_type: options.event_type,
        limit: Math.min(options.limit - deliveries.length, LIST_LIMIT_MAX),
        cursor: cursor ?? undefined,
      },
    });
    for (const delivery of page.deliveries.slice(0, options.limit - deliveries.length))
      deliveries.push(delivery);
    cursor = page.deliveries.length === 0 ? null : page.next_cursor;
  } while (cursor !== null && deliveries.length < options.limit);
  return { deliveries, next_cursor: cursor };
}
