import { constants } from 'node:os';

/** The first and the last of the real-time signals, as programs of the C library have them. */
const REALTIME = { MIN: 34, MAX: 64 };
/** From here on a real-time signal is named by its distance to the last one, as shells do. */
const NEARER_TO_LAST = 50;

const numbers: Record<string, number> = {
  ...(constants.signals as Record<string, number>),
  // Other names of signal(7).
  SIGCLD: constants.signals.SIGCHLD,
};

const names = new Map<number, string>();
for (const [name, number] of Object.entries(numbers)) if (!names.has(number)) names.set(number, name);
for (let number = REALTIME.MIN; number <= REALTIME.MAX; number++) names.set(number, realtimeName(number));

function realtimeName(number: number): string {
  if (number < NEARER_TO_LAST) return `SIGRTMIN${distance('+', number - REALTIME.MIN)}`;
  return `SIGRTMAX${distance('-', REALTIME.MAX - number)}`;
}

function distance(sign: string, steps: number): string {
  return steps === 0 ? '' : sign + steps;
}

/** The name of a signal, such as `SIGTERM` or `SIGRTMIN+3`; `SIG` and the number where it has none, such as `SIG32`. */
export function signalName(number: number): string {
  return names.get(number) ?? `SIG${number}`;
}

/**
 * The number of the signal that a text names, in any case, with or without `SIG`: `TERM`, `SIGRTMIN+3`, `rtmax-2`, `9`. Null
 * where there is none.
 */
export function signalNumber(text: string): number | null {
  const upper = text.toUpperCase();
  const name = upper.startsWith('SIG') ? upper : `SIG${upper}`;
  const known = Object.hasOwn(numbers, name) ? numbers[name] : undefined;
  if (known !== undefined) return known;
  const counted = /^SIG(?:(\d{1,2})|RTMIN(?:\+(\d{1,2}))?|RTMAX(?:-(\d{1,2}))?)$/.exec(name);
  if (!counted) return null;
  const [, plain, after_first = 0, before_last = 0] = counted;
  if (plain !== undefined) return Number(plain) >= 1 && Number(plain) <= REALTIME.MAX ? Number(plain) : null;
  const number = name.startsWith('SIGRTMIN')
    ? REALTIME.MIN + Number(after_first)
    : REALTIME.MAX - Number(before_last);
  return number >= REALTIME.MIN && number <= REALTIME.MAX ? number : null;
}
