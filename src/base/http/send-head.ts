import type { OutgoingHttpHeader, ServerResponse } from 'node:http';

/**
 * Sends the head of an answer with header values as Node reads them, a character for each byte; so they arrive as the same
 * bytes. By its own ways Node writes those of a flushed head as UTF-8, and takes a `Content-Disposition` that follows a
 * `Content-Length` for text. Throws, and sends nothing, where a header cannot be written.
 */
export function sendHead(
  answer: ServerResponse,
  status: number,
  headers: readonly [name: string, value: string | string[]][],
): void {
  const isLength = ([name]: [string, unknown]) => name.toLowerCase() === 'content-length';
  const ordered = [...headers.filter((each) => !isLength(each)), ...headers.filter(isLength)];
  answer.writeHead(status, ordered.flat() as OutgoingHttpHeader[]);
  answer.write(Buffer.alloc(0));
}
