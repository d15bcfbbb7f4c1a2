import { nowMs } from './clock.ts';

/** How the page writes numbers, sizes, times and texts of others. */

const KIB = 1024;
const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const local = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' });
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });

/** A number of bytes: `1.5 MiB`. */
export function bytes(value: number): string {
  let size = value;
  let step = 0;
  while (size >= KIB && step < SIZES.length - 1) {
    size /= KIB;
    step += 1;
  }
  return `${short.format(size)} ${SIZES[step]}`;
}

/** A number with separators. */
export function count(value: number): string {
  return whole.format(value);
}

/** A number, rounded to one digit behind the point. */
export function decimal(value: number): string {
  return short.format(value);
}

/** One thing, or several: `1 event`, `2 events`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : noun.endsWith('y') ? '' : 's'}`;
}

/** A duration: `850 ms`, `12.3 s`, `4 min 5 s`, `2 h 3 min`, `3 d 4 h`. */
export function duration(value_ms: number): string {
  if (value_ms < SECOND_MS) return `${whole.format(value_ms)} ms`;
  if (value_ms < MINUTE_MS) return `${short.format(value_ms / SECOND_MS)} s`;
  const steps: [number, string, number, string][] = [
    [DAY_MS, 'd', HOUR_MS, 'h'],
    [HOUR_MS, 'h', MINUTE_MS, 'min'],
    [MINUTE_MS, 'min', SECOND_MS, 's'],
  ];
  const [large, large_name, small, small_name] = steps.find(
    ([step]) => value_ms >= step,
  ) as (typeof steps)[0];
  const rest = Math.floor((value_ms % large) / small);
  return `${Math.floor(value_ms / large)} ${large_name}${rest === 0 ? '' : ` ${rest} ${small_name}`}`;
}

/** A time in the machine's zone: `2026-11-22 23:10:05`. */
export function localTime(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? iso : local.format(at);
}

/** How long ago a time is, or how long until it: `5 min ago`, `in 2 h`. */
export function relativeTime(iso: string, now_ms = nowMs()): string {
  const away_ms = new Date(iso).getTime() - now_ms;
  if (Number.isNaN(away_ms)) return iso;
  if (Math.abs(away_ms) < SECOND_MS) return 'now';
  const [first = ''] =
    /^[\d.,]+ \w+/.exec(
      duration(
        Math.abs(away_ms) < MINUTE_MS
          ? Math.floor(Math.abs(away_ms) / SECOND_MS) * SECOND_MS
          : Math.abs(away_ms),
      ),
    ) ?? [];
  return away_ms < 0 ? `${first} ago` : `in ${first}`;
}

/** The part of an id that people tell things apart by: without its prefix, the last 8 characters. */
export function shortId(id: string): string {
  const [, prefix = '', rest = id] = /^([a-z]{2,5}_)?(.*)$/s.exec(id) ?? [];
  return rest.length > 12 ? `${prefix}…${rest.slice(-8)}` : id;
}

/** Characters that people cannot see, or that turn the order of what they see around. */
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text of others for one line: what is hidden in it is shown by its number. */
export function visible(text: string): string {
  return text.replace(/[\t\n]/g, (each) => (each === '\n' ? '⏎' : '⇥')).replace(HIDDEN, escaped);
}

/** A text of others over several lines. */
export function visibleLines(text: string): string {
  return text.replace(HIDDEN, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
