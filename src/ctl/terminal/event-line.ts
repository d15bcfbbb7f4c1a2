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

/** What happened, in words. Fields are shown as received, because a body may break the contract. */
function summaryOf({ event_type, payload, payload_text }: ReceivedEvent): string {
  switch (event_type) {
    case 'sandbox.ready':
      return `port ${show(payload.http_port)}, ${
        payload.watch_dir === null ? 'watching nothing' : `watching ${show(payload.watch_dir)}`
      }`;
    case 'sandbox.paused':
      return because(payload.reason, 'paused');
    case 'sandbox.resumed':
      return `${because(payload.reason, 'resumed')} after ${showDuration(payload.paused_ms)}`;
    case 'sandbox.killed':
      return `${show(payload.signal ?? payload.reason)} after ${showDuration(payload.uptime_ms)}`;
    case 'sandbox.deleted':
      return because(payload.reason, 'deleted');
    case 'process.started':
      return `${processName(payload)}${payload.restart_count ? ` restart ${show(payload.restart_count)}` : ''}: ${show(payload.command)}`;
    case 'process.exited':
    case 'process.crashed':
      return `${processName(payload)} ${ending(payload)} after ${showDuration(payload.duration_ms)}`;
    case 'file.modified':
      return payload.event_type === 'rename'
        ? `rename ${show(payload.old_path)} → ${show(payload.path)}`
        : `${show(payload.event_type)} ${show(payload.path)}`;
    default:
      return payload_text;
  }
}

function processName(payload: Record<string, unknown>): string {
  return payload.name ? `${show(payload.name)} (pid ${show(payload.pid)})` : `pid ${show(payload.pid)}`;
}

function ending(payload: Record<string, unknown>): string {
  if (payload.reason === 'oom') return 'ran out of memory';
  if (payload.timed_out === true) return `timed out, ${show(payload.signal ?? payload.exit_code)}`;
  if (payload.signal) return `ended by ${show(payload.signal)}${payload.core_dumped ? ', core dumped' : ''}`;
  return payload.exit_code === null ? 'ended, exit code unknown' : `exited with ${show(payload.exit_code)}`;
}

function because(reason: unknown, what: string): string {
  return reason ? `${what}: ${show(reason)}` : what;
}

function show(value: unknown): string {
  if (Array.isArray(value)) return value.map(show).join(' ');
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '?');
}

function showDuration(value: unknown): string {
  return typeof value === 'number' ? duration(value) : show(value);
}
