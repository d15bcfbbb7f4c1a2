import { constants } from 'node:os';
import { invalidField } from '../../contract/errors.ts';

const numbers = constants.signals as Record<string, number | undefined>;

/** The signal with this name, with or without `SIG`. Throws `invalid_request` for an unknown name. */
export function parseSignal(value: unknown): NodeJS.Signals {
  if (typeof value === 'string') {
    const upper = value.toUpperCase();
    const name = upper.startsWith('SIG') ? upper : `SIG${upper}`;
    if (numbers[name] !== undefined) return name as NodeJS.Signals;
  }
  throw invalidField('signal', 'must be the name of a signal, such as SIGTERM');
}

/** The number of a signal, 0 if this platform does not have it. */
function signalNumber(signal: string): number {
  return numbers[signal] ?? (Number(signal.slice('SIG'.length)) || 0);
}

/** The exit code of an end: `code`, or 128 + the signal's number. Source: contract section 2. */
export function exitCodeOf(code: number | null, signal: string | null): number {
  return signal === null ? (code ?? 0) : 128 + signalNumber(signal);
}
