import { eventReader, type ServerSentEvent } from '../../contract/server-sent-events.ts';
import { EXIT, Failure } from '../failure.ts';

/**
 * The events of a `text/event-stream` body, each when it is complete, until the body ends. An endless line or event is
 * a `Failure`.
 */
export async function* serverSentEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const read = eventReader(
    () => new Failure(EXIT.failed, 'the stream contains a line or event that is too long'),
  );
  for await (const chunk of body) yield* read(chunk);
}

/** The events of a body, of which a broken connection is the end: the next one goes on where it ended. */
export async function* untilBroken(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  try {
    yield* serverSentEvents(body);
  } catch (error) {
    if (error instanceof Failure) throw error;
  }
}
