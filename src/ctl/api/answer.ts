import type { IncomingMessage } from 'node:http';
import type { ErrorCode } from '../../contract/errors.ts';

/** The envelope of an answer, as far as it is one. Contract section 4, "The local API". */
export interface Answer {
  success?: boolean;
  data?: unknown;
  error?: { code: ErrorCode; message: string; details?: unknown };
}

/** Whether the status of an answer is 2xx. */
export function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

/** The media type of an answer, without parameters; `no type` where it has none. */
export function mediaType({ headers }: IncomingMessage): string {
  return (headers['content-type'] ?? 'no type').split(';')[0]?.trim().toLowerCase() ?? '';
}

/** The envelope in a text; null if it is no JSON. */
export function parseAnswer(text: string): Answer | null {
  try {
    return JSON.parse(text) as Answer | null;
  } catch {
    return null;
  }
}
