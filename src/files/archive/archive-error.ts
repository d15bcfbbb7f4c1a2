import { ApiError, FieldError } from '../../contract/errors.ts';
import { type BytePath, shownBytes } from '../byte-path.ts';

/** An archive may have names of megabytes, which nobody reads. */
const NAME_MAX_BYTES = 1_024;

/** The end of a body that its client did not finish. */
export function cutOff(): ApiError {
  return new ApiError('invalid_request', 'The body was cut off.');
}

/** An `invalid_request` about one entry. */
export function invalidEntry(name: BytePath, problem: string): FieldError {
  return new FieldError({ field: 'body', problem: `the entry ${quoted(name)} ${problem}` });
}

/** The name of an entry in a message. */
export function quoted(name: BytePath): string {
  const cut = name.length > NAME_MAX_BYTES ? `${name.slice(0, NAME_MAX_BYTES)}...` : name;
  return JSON.stringify(shownBytes(cut).text);
}
