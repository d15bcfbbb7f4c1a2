import { createParser } from 'eventsource-parser';
import { SandboxdError } from '../error.ts';

/** A server-sent event; `id` is the last one that came. */
export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/** Far more than an event has: a record's body is little more than the 1 MiB of a publish. */
const EVENT_MAX_CHARACTERS = 16 * 1024 * 1024;

/**
 * The events of a body until it ends. A body that breaks ends as well: who follows goes on after the last `id`. Who stops
 * reading ends the request.
 */
export async function* serverEvents({ body }: Response): AsyncGenerator<ServerEvent, void> {
  if (body === null) return;
  const complete: ServerEvent[] = [];
  let last_id = '';
  const parser = createParser({
    maxBufferSize: EVENT_MAX_CHARACTERS,
    onEvent: ({ id = last_id, event = 'message', data }) => {
      last_id = id;
      complete.push({ id, event, data });
    },
    onError: ({ type }) => {
      if (type !== 'max-buffer-size-exceeded') return;
      throw new SandboxdError({
        code: 'bad_answer',
        message: 'the stream has an endless event',
        status: 200,
      });
    },
  });
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const chunk = await reader.read().catch(() => ({ done: true as const, value: undefined }));
      if (chunk.done) return;
      parser.feed(decoder.decode(chunk.value, { stream: true }));
      yield* complete.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
