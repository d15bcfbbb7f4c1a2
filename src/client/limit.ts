import { SandboxdError } from './error.ts';

/** Far more than a JSON answer has: the longest are lists of 10 000 entries. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

/** An answer that is read whole, JSON or an error, ends within a limit: it may come from a hostile sandbox. */
export function limited(response: Response): Response {
  const { body, ok, status, statusText, headers } = response;
  const is_stream = ok && !headers.get('content-type')?.startsWith('application/json');
  if (body === null || is_stream) return response;
  let bytes = 0;
  const limit = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes <= ANSWER_MAX_BYTES) return controller.enqueue(chunk);
      controller.error(new SandboxdError({ code: 'bad_answer', message: 'the answer does not end', status }));
    },
  });
  return new Response(body.pipeThrough(limit), { status, statusText, headers });
}
