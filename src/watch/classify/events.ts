import type { FileModified, FileOperation } from '../../contract/events.ts';
import { shownPath } from '../index/name.ts';

/** A file event as it is committed: when it happened (wall time in ms), and its payload. */
export interface FileEvent {
  happened_at_ms: number;
  payload: FileModified;
}

/**
 * Makes the event of one operation from paths in internal form; `old_path` belongs to a rename.
 * Source: contract sections 2 and 6.
 */
export function fileEvent(
  event_type: FileOperation,
  path: string,
  is_directory: boolean,
  happened_at_ms: number,
  old_path?: string,
): FileEvent {
  const shown = shownPath(path);
  const old = old_path === undefined ? null : shownPath(old_path);
  const payload: FileModified = {
    event_type,
    path: shown.text,
    ...(shown.base64 !== null && { path_base64: shown.base64 }),
    ...(old && { old_path: old.text }),
    ...(old && old.base64 !== null && { old_path_base64: old.base64 }),
    is_directory,
  };
  return { happened_at_ms, payload };
}
