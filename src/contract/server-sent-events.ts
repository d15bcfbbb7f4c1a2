import { createParser } from 'eventsource-parser';

/** A server-sent event as received: `data` is its lines joined, `id` the last one sent. */
export interface ServerSentEvent {
  id: string;
  event: string;
  data: string;
}

/** Far more than the programs send in an event: a record's body is little more than the 1 MiB of a publish. */
const EVENT_MAX_CHARACTERS = 16 * 1024 * 1024;

/**
 * Reads a `text/event-stream` body: the returned function takes its pieces one after the other and gives the events that
 * each completes. It throws what `tooLong` makes at a line or event that does not end.
 */
export function eventReader(tooLong: (message: string) => Error): (piece: Uint8Array) => ServerSentEvent[] {
  const decoder = new TextDecoder();
  const complete: ServerSentEvent[] = [];
  let last_id = '';
  const parser = createParser({
    maxBufferSize: EVENT_MAX_CHARACTERS,
    onEvent: ({ id = last_id, event = 'message', data }) => {
      last_id = id;
      complete.push({ id, event, data });
    },
    onError: ({ type, message }) => {
      if (type === 'max-buffer-size-exceeded') throw tooLong(message);
    },
  });
  return (piece) => {
    parser.feed(decoder.decode(piece, { stream: true }));
    return complete.splice(0);
  };
}
