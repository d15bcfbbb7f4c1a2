import type { DeliveryPage } from '../contract/deliveries.ts';
import { type ReconnectingReader, readToEnd } from './api/reconnecting.ts';
import { untilBroken } from './api/server-sent-events.ts';
import type { Context } from './context.ts';
import { EXIT, type ExitCode, Failure } from './failure.ts';
import { jsonOnOneLine, parseEvent } from './listen/received-event.ts';
import { eventLine } from './terminal/event-line.ts';
import { printable } from './terminal/printable.ts';

/** Prints the stored events after `since`, up to the newest now. Contract section 4, `GET /events/stream`. */
export async function events(context: Context, since = 0): Promise<ExitCode> {
  const newest = await newestSequence(context);
  if (newest <= since) return EXIT.ok;
  const reader = new StreamReader(context, since);
  if ((await reader.read(undefined, newest)) === 'last') return EXIT.ok;
  throw new Failure(EXIT.unreachable, `${context.client.shown} ended the stream before event #${newest}`);
}

/**
 * Prints events as they are committed until `interrupted`, beginning with the stored ones after `since` (default:
 * none). A lost connection is reopened where it ended.
 */
export async function followEvents(
  context: Context,
  interrupted: AbortSignal,
  since?: number,
): Promise<ExitCode> {
  const reader = new StreamReader(context, since ?? (await newestSequence(context)));
  await readToEnd(reader, interrupted, () => context.err.line('connection lost; retrying'));
  return EXIT.ok;
}

/** Reads the stream over as many connections as necessary. */
class StreamReader implements ReconnectingReader<'last'> {
  /** The sequence of the last printed event; the next connection resumes after it. */
  #position: number;
  /** Whether the daemon has accepted a connection before. */
  connected = false;
  readonly #context: Context;

  constructor(context: Context, since: number) {
    this.#context = context;
    this.#position = since;
  }

  /** Prints until the connection ends, `signal` aborts or the event `last` is printed. */
  async read(signal?: AbortSignal, last = Number.POSITIVE_INFINITY): Promise<'last' | 'lost'> {
    const type = 'text/event-stream';
    const body = await this.#context.client.stream('/events/stream', {
      type,
      headers: { accept: type, 'last-event-id': String(this.#position) },
      ...(signal ? { signal } : {}),
    });
    this.connected = true;
    try {
      for await (const { id, data } of untilBroken(body)) {
        await this.#print(data);
        this.#position = Number(id);
        if (this.#position >= last) return 'last';
      }
      return 'lost';
    } finally {
      body.destroy();
    }
  }

  #print(data: string): Promise<void> {
    const { out, json } = this.#context;
    if (json) return out.json(jsonOnOneLine(data));
    const event = parseEvent(data);
    return out.line(event ? eventLine(event, out) : printable(data));
  }
}

/** The highest stored sequence, 0 if there is none. Records of another sandbox have their own sequence. */
async function newestSequence({ client }: Context): Promise<number> {
  const { deliveries } = await client.call<DeliveryPage>('GET', '/webhook/deliveries');
  const newest = deliveries.find((each) => Number.isSafeInteger(each?.sequence) && each.state !== 'foreign');
  return newest?.sequence ?? 0;
}
