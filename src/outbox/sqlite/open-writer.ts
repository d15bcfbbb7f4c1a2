import { systemClock } from '../../base/clock.ts';
import { StartError } from '../../contract/errors.ts';
import { OutboxFiles } from './files/outbox-files.ts';
import type { StateLock } from './files/state-lock.ts';
import type { FromWriter, WriterSettings, WriterState } from './messages.ts';
import { Writer } from './writer.ts';

/**
 * Opens the outbox's files for a writer. `lock` returns the lock, and takes it where it is not held. Null where the
 * files cannot be opened, or must be salvaged and this is not the writer thread; `reply` receives the reason.
 */
export function openWriter(
  settings: WriterSettings,
  reply: (message: FromWriter) => void,
  previous: WriterState | null,
  lock: () => StateLock,
  in_thread: boolean,
): Writer | null {
  try {
    return open(settings, reply, previous, lock(), in_thread);
  } catch (error) {
    const message = (error as Error).message;
    const where = error instanceof StartError ? '' : `state directory ${settings.state_dir}: `;
    // What was open a moment ago can be opened again, once the disk's trouble is over.
    const may_pass = previous === null ? mayPass(error) : !(error instanceof StartError);
    reply({ kind: 'refused', message: where + message, may_pass });
    return null;
  }
}

function open(
  { state_dir, limits }: WriterSettings,
  reply: (message: FromWriter) => void,
  previous: WriterState | null,
  lock: StateLock,
  in_thread: boolean,
): Writer | null {
  const files = new OutboxFiles(state_dir, systemClock, lock);
  try {
    if (files.is_salvage_due && !in_thread) {
      files.close();
      reply({ kind: 'salvage_due' });
      return null;
    }
    return new Writer({ files, limits, clock: systemClock, reply, previous });
  } catch (error) {
    files.close();
    throw error;
  }
}

/** Whether an error of a start may pass: no room, too many open files, or a disk that fails. */
function mayPass(error: unknown): boolean {
  const passing = /^(SQLITE_FULL|SQLITE_IOERR|SQLITE_NOMEM|ENOSPC|EDQUOT|EFBIG|EIO|EMFILE|ENFILE|ENOMEM)/;
  return passing.test((error as { code?: string }).code ?? '');
}
