import { eventReader, type ServerSentEvent } from '../../contract/server-sent-events.ts';
import type { Answer } from '../connector.ts';
import { SandboxdError, unreachable } from '../error.ts';

/**
 * The events of a body until it ends. Throws `unreachable` where it breaks off: who follows goes on after the last `id`. Who
 * stops reading ends the request.
 */
export async function* serverEvents(answer: Answer): AsyncGenerator<ServerSentEvent, void> {
  const read = eventReader(() => {
    const message = 'the stream contains a line or event that is too long';
    return new SandboxdError({ code: 'bad_answer', message, status: answer.status });
  });
  const pieces = answer.pieces()[Symbol.asyncIterator]();
  try {
    for (;;) {
      const piece = await pieces.next().catch((error: unknown) => {
        throw unreachable(error);
      });
      if (piece.done) return;
      yield* read(piece.value);
    }
  } finally {
    await pieces.return?.();
  }
}
