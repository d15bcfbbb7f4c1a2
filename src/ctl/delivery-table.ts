import type { DeliveryView } from '../contract/deliveries.ts';
import type { DeliveryState } from '../contract/words.ts';
import { distinctLength } from './terminal/distinct-length.ts';
import type { Output, Style } from './terminal/output.ts';
import { printable } from './terminal/printable.ts';
import { glance } from './terminal/quantity.ts';
import { type Column, table } from './terminal/table.ts';

/** The prefix of an id that names its millisecond: never shorter, so that it mostly stays unique as events are added. */
const SHORT_ID = 'evt_019a2b3c-4d5e'.length;
const LONGEST_TYPE = 'process.started'.length;
const LONGEST_STATE = 'delivered'.length;
/** What is shown at least of why an attempt failed. */
const RESULT_MIN_COLUMNS = 24;

/** The style of each state on a terminal. */
export const STATE_STYLES: Record<DeliveryState, Style> = {
  pending: 'yellow',
  delivered: 'green',
  failed: 'red',
  expired: 'red',
  foreign: 'dim',
};

/** Records as a table for `out`, titles first; `now_ms` is the wall time that ages count to. Pure. */
export function deliveryTable(deliveries: readonly DeliveryView[], out: Output, now_ms: number): string[] {
  const id_length = distinctLength(
    deliveries.map(({ event_id }) => event_id),
    SHORT_ID,
  );
  const columns: Column<DeliveryView>[] = [
    { title: 'SEQUENCE', cell: ({ sequence }) => String(sequence ?? '-'), spare: 1 },
    { title: 'AGE', cell: ({ created_at }) => glance(now_ms - Date.parse(created_at)), least: 6 },
    { title: 'EVENT TYPE', cell: ({ event_type }) => event_type, least: LONGEST_TYPE },
    {
      title: 'STATE',
      cell: ({ state }) => state,
      style: ({ state }, text) => out.style(STATE_STYLES[state] ?? 'dim', text),
      least: LONGEST_STATE,
    },
    { title: 'ATTEMPTS', cell: ({ attempt_count }) => String(attempt_count) },
    { title: 'NEXT', cell: ({ next_attempt_at }) => nextText(next_attempt_at, now_ms), least: 6, spare: 2 },
    { title: 'EVENT ID', cell: ({ event_id }) => event_id.slice(0, id_length), least: SHORT_ID },
    { title: 'LAST RESULT', cell: resultText, cut_to: RESULT_MIN_COLUMNS },
  ];
  return table(columns, deliveries, out.columns);
}

function nextText(next_attempt_at: string | null, now_ms: number): string {
  return next_attempt_at === null ? '-' : glance(Date.parse(next_attempt_at) - now_ms);
}

function resultText({ last_status, last_error, last_error_detail }: DeliveryView): string {
  return printable(last_error_detail ?? String(last_status ?? last_error ?? '-'));
}
