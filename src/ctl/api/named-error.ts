import type { ErrorCode } from '../../contract/errors.ts';

/** Which sandbox, and what in it, a path of either API is about. */
const SANDBOX = /\/sandboxes\/([^/]+)/;
const OTHER = /\/(?:processes|deliveries|quotas)\/([^/]+)/;
/** What is wrong with whoever asks, whatever is asked for. */
const OF_CALLER = new Set<ErrorCode>(['unauthorized', 'forbidden']);

/**
 * The message of an error with the name of what it is about, unless it has it: the file that its details name, or the
 * sandbox, process, record or quota whose path was asked for. One command may ask for several.
 */
export function namedMessage(
  error: { code: ErrorCode; message: string; details?: unknown },
  path: string,
): string {
  const { code, message } = error;
  const name = OF_CALLER.has(code) ? null : nameOf(error, path);
  return name === null || String(message).includes(name) ? message : `${name}: ${message}`;
}

function nameOf({ message, details }: { message: string; details?: unknown }, path: string): string | null {
  const { path: file } = (details ?? {}) as { path?: unknown };
  if (typeof file === 'string') return file;
  const sandbox = SANDBOX.exec(path)?.[1];
  const other = OTHER.exec(path)?.[1];
  const named = /sandbox/i.test(message) ? (sandbox ?? other) : (other ?? sandboxAlone(path));
  return named === undefined ? null : decoded(named);
}

/** The sandbox of a path that is about it, and not about something in it. */
function sandboxAlone(path: string): string | undefined {
  return /\/sandboxes\/([^/]+)(?:\/(?:pause|resume|fork|refresh))?$/.exec(path)?.[1];
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
