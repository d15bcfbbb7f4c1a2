import { systemClock } from '../base/clock.ts';
import { StartError } from '../contract/errors.ts';
import { OutboxFiles } from './outbox-files.ts';
import type { FromWriter, Handover, WriterSettings } from './protocol.ts';
import { Writer } from './writer.ts';

/** Opens the outbox's files for a writer; null where they are refused, which `reply` is told. */
export function openWriter(
  settings: WriterSettings,
  reply: (message: FromWriter) => void,
  handed: Handover | null,
): Writer | null {
  try {
    return open(settings, reply, handed);
  } catch (error) {
    const message = (error as Error).message;
    const where = error instanceof StartError ? '' : `state directory ${settings.state_dir}: `;
    // What was open a moment ago can be opened again, once the disk's trouble is over.
    reply({ kind: 'refused', message: where + message, may_pass: handed !== null || mayPass(error) });
    return null;
  }
}

function open(
  { state_dir, limits }: WriterSettings,
  reply: (message: FromWriter) => void,
  handed: Handover | null,
): Writer {
  const files = new OutboxFiles(state_dir, systemClock);
  try {
    return new Writer({ files, limits, clock: systemClock, reply, handed });
  } catch (error) {
    files.close();
    throw error;
  }
}

/** Whether an error of a start may be over by itself: no room, or a disk that fails. */
function mayPass(error: unknown): boolean {
  return /^(SQLITE_FULL|SQLITE_IOERR|ENOSPC|EDQUOT|EFBIG|EIO)/.test((error as { code?: string }).code ?? '');
}
