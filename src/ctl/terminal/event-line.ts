import { eventRow } from '../../contract/events.ts';
import type { ReceivedEvent } from '../listen/received-event.ts';
import type { Output, Style } from './output.ts';
import { cut, printable, width } from './printable.ts';
import { duration } from './quantity.ts';

/** The length of the longest event type, so that what follows is aligned. */
const TYPE_WIDTH = 'process.started'.length;
/** On a terminal the summary is shortened to make room for the event's id, but not below this. */
const SUMMARY_MIN_COLUMNS = 24;

/**
 * One event on one line: time, sequence, type, what happened, notes, event_id. Fits a terminal of at least 100 columns
 * and is coloured there. `notes`, such as `duplicate`, are shown in brackets.
 */
export function eventLine(event: ReceivedEvent, out: Output, notes: string[] = []): string {
  const time = printable(event.timestamp).slice(11, 23).padEnd(12);
  const sequence = `#${event.sequence ?? '-'}`.padEnd(5);
  const type = printable(event.event_type).padEnd(TYPE_WIDTH);
  const id = printable(event.event_id);
  const note = notes.length > 0 ? `[${notes.join(', ')}] ` : '';
  const summary = printable(summaryOf(event));
  const fixed = [time, sequence, type, `${note}${id}`].reduce((sum, part) => sum + width(part) + 1, 0);
  const room =
    out.columns === null ? Number.POSITIVE_INFINITY : Math.max(SUMMARY_MIN_COLUMNS, out.columns - fixed);
  return [
    out.style('dim', time),
    out.style('dim', sequence),
    out.style(colour(event), type),
    cut(summary, room),
    `${note && out.style('yellow', note)}${out.style('dim', id)}`,
  ].join(' ');
}

function colour({ event_type, payload }: ReceivedEvent): Style {
  if (event_type === 'process.crashed') return 'red';
  if (event_type === 'process.exited') return payload.exit_code === 0 ? 'green' : 'yellow';
  if (event_type.startsWith('process.')) return 'green';
  if (event_type.startsWith('sandbox.')) return 'blue';
  return event_type.startsWith('file.') ? 'cyan' : 'magenta';
}

/** What happened, in words. */
function summaryOf({ event_type, payload, payload_text }: ReceivedEvent): string {
  return eventRow(event_type)?.line(payload, { duration, json: payload_text }) ?? payload_text;
}
