import { eventRow } from '../../contract/events.ts';
import { duration, localTime, visible } from '../base/format.ts';

/** One event as a line: its time, kind, sandbox, and what it says. */
export interface EventLine {
  /** Distinguishes lines; the id of the event. */
  key: string;
  event_type: string;
  timestamp: string;
  /** The time of day in the machine's zone. */
  clock: string;
  sandbox_id: string;
  summary: string;
  body: string;
}

/** Lines that are kept: older ones are dropped from the page, not from the outbox. */
const KEPT_MAX = 20_000;
/** Dropped at once: the places of all that stay change with them. */
const DROPPED = KEPT_MAX / 10;

/** The line of an event's body, whatever it holds. */
export function lineOf(body: string, event_type: string, key: string): EventLine {
  const event = objectOf(body);
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  return {
    key: text(event.event_id) || key,
    event_type,
    timestamp: text(event.timestamp),
    clock: localTime(text(event.timestamp)).slice(-8),
    sandbox_id: text(event.sandbox_id),
    summary: visible(summaryOf(event_type, event.payload)),
    body,
  };
}

/** The lines with newer ones behind them, as many as are kept and few more. */
export function withLines(lines: readonly EventLine[], newer: readonly EventLine[]): EventLine[] {
  const all = [...lines, ...newer];
  return all.length > KEPT_MAX + DROPPED ? all.slice(-KEPT_MAX) : all;
}

/** Lines of a kind that contain a text; '' asks for nothing. */
export interface Wanted {
  kind: string;
  text: string;
}

/** Finds the lines that are wanted; of lines that grow at their end, it looks at each once. */
export class Finder {
  #wanted: Wanted = { kind: '', text: '' };
  #looked: readonly EventLine[] = [];
  #found: readonly EventLine[] = [];

  find(lines: readonly EventLine[], wanted: Wanted): readonly EventLine[] {
    const { kind, text } = wanted;
    if (kind === '' && text === '') return lines;
    const is_same = kind === this.#wanted.kind && text === this.#wanted.text;
    const has_grown = is_same && lines.length >= this.#looked.length && lines[0] === this.#looked[0];
    const newer = has_grown ? lines.slice(this.#looked.length) : lines;
    const lower = text.toLowerCase();
    const more = newer.filter(
      (line) => (kind === '' || line.event_type === kind) && line.body.toLowerCase().includes(lower),
    );
    if (!has_grown) this.#found = more;
    else if (more.length > 0) this.#found = [...this.#found, ...more];
    this.#wanted = wanted;
    this.#looked = lines;
    return this.#found;
  }
}

function objectOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

const SUMMARY_MAX = 200;

function summaryOf(event_type: string, payload: unknown): string {
  const json = JSON.stringify(payload ?? null);
  const fields = (typeof payload === 'object' && payload !== null ? payload : {}) as Record<string, unknown>;
  return (eventRow(event_type)?.line(fields, { duration, json }) ?? json).slice(0, SUMMARY_MAX);
}
