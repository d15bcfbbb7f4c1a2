import { signalName, signalNumber } from '../../base/linux/signals.ts';
import { invalidField } from '../../contract/errors.ts';

/**
 * The signal that a caller names, by the name under which ends by it are reported. Throws `invalid_request` where there is
 * none. Source: contract section 4, POST `/processes/{id}/signal`.
 */
export function parseSignal(value: unknown): string {
  const number = typeof value === 'string' ? signalNumber(value) : null;
  if (number === null)
    throw invalidField('signal', 'must be the name or the number of a signal, such as SIGTERM');
  return signalName(number);
}

/** The exit code of an end: `code`, or 128 + the signal's number. Source: contract section 2. */
export function exitCodeOf(code: number | null, signal: string | null): number {
  return signal === null ? (code ?? 0) : 128 + (signalNumber(signal) ?? 0);
}
