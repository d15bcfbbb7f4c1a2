import { eventReader, type ServerSentEvent } from '../../contract/server-sent-events.ts';
import { SandboxdError } from '../error.ts';

/**
 * The events of a body until it ends. A body that breaks ends as well: who follows goes on after the last `id`. Who stops
 * reading ends the request.
 */
export async function* serverEvents({ body }: Response): AsyncGenerator<ServerSentEvent, void> {
  if (body === null) return;
  const read = eventReader(
    () => new SandboxdError({ code: 'bad_answer', message: 'the stream has an endless event', status: 200 }),
  );
  const reader = body.getReader();
  try {
    for (;;) {
      const chunk = await reader.read().catch(() => ({ done: true as const, value: undefined }));
      if (chunk.done) return;
      yield* read(chunk.value);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
