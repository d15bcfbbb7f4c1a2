import { EXIT, Failure } from '../failure.ts';

/** A server-sent event as received: `data` is its lines joined, `id` the last one sent. */
export interface StreamEvent {
  id: string;
  event: string;
  data: string;
}

/** Far more than the daemon sends in a line: a record's body is little more than the 1 MiB of a publish. */
const LINE_MAX_CHARACTERS = 16 * 1024 * 1024;
const EVENT_MAX_CHARACTERS = 32 * 1024 * 1024;

/**
 * The events of a `text/event-stream` body, each when it is complete, until the body ends. An endless line or event is
 * a `Failure`.
 */
export async function* serverSentEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  let id = '';
  let event = '';
  let data: string[] = [];
  let length = 0;
  for await (const line of lines(body)) {
    if (line === '') {
      if (data.length > 0) yield { id, event: event || 'message', data: data.join('\n') };
      event = '';
      data = [];
      length = 0;
      continue;
    }
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'id') id = value;
    else if (field === 'event') event = value;
    else if (field === 'data') {
      data.push(value);
      length += value.length + 1;
      if (length > EVENT_MAX_CHARACTERS)
        throw new Failure(EXIT.failed, 'the stream contains an endless event');
    }
  }
}

async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const text = decoder.decode(chunk, { stream: true });
    if (!/[\r\n]/.test(text)) {
      rest += text;
      if (rest.length > LINE_MAX_CHARACTERS)
        throw new Failure(EXIT.failed, 'the stream contains an endless line');
      continue;
    }
    const parts = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = parts.pop() ?? '';
    yield* parts;
  }
}
