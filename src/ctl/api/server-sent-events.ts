import { createParser } from 'eventsource-parser';
import { EXIT, Failure } from '../failure.ts';

/** A server-sent event as received: `data` is its lines joined, `id` the last one sent. */
export interface StreamEvent {
  id: string;
  event: string;
  data: string;
}

/** Far more than the daemon sends in an event: a record's body is little more than the 1 MiB of a publish. */
const EVENT_MAX_CHARACTERS = 16 * 1024 * 1024;

/**
 * The events of a `text/event-stream` body, each when it is complete, until the body ends. An endless line or event is
 * a `Failure`.
 */
export async function* serverSentEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  const complete: StreamEvent[] = [];
  let last_id = '';
  const parser = createParser({
    maxBufferSize: EVENT_MAX_CHARACTERS,
    onEvent: ({ id = last_id, event = 'message', data }) => {
      last_id = id;
      complete.push({ id, event, data });
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded')
        throw new Failure(EXIT.failed, 'the stream contains a line or event that is too long');
    },
  });
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* complete.splice(0);
  }
}

/** The events of a body, of which a broken connection is the end: the next one goes on where it ended. */
export async function* untilBroken(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  try {
    yield* serverSentEvents(body);
  } catch (error) {
    if (error instanceof Failure) throw error;
  }
}
