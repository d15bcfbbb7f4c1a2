import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { ApiError } from '../../contract/errors.ts';

/** The name of the copy that a held daemon makes of its outbox, in its state directory. */
const OUTBOX_COPY = 'outbox-copy.db';
/** The name of an outbox in its state directory. */
export const OUTBOX = 'outbox.db';

/**
 * Opens the copy of the outbox in a state directory, given by its descriptor, for reading. What the sandbox's processes may
 * have put in its place is refused: a link would lead to any file of the host, and a pipe nowhere. Throws `internal_error`.
 */
export function openOutboxCopy(state_dir: number): number {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = openSync(`/proc/self/fd/${state_dir}/${OUTBOX_COPY}`, flags);
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw new ApiError('internal_error', 'The source has lost its outbox.');
}
