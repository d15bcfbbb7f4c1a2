import type { ClientRequest } from 'node:http';
import type { Readable } from 'node:stream';

/** The body of a request; a stream is sent as it comes. */
export type RequestBody = string | Uint8Array | Readable;

/** Whether all of a body is there. */
export function isWhole(body: RequestBody | undefined): body is string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array;
}

/** Ends a request with its body. A stream that fails cuts the request; an answer that comes before its end ends it. */
export function sendBody(request: ClientRequest, body: RequestBody | undefined): void {
  if (body === undefined || isWhole(body)) {
    request.end(body);
    return;
  }
  body.once('error', (error) => request.destroy(error));
  request.once('response', () => body.unpipe(request));
  request.once('close', () => body.destroy());
  body.pipe(request);
}
