import type { IncomingMessage } from 'node:http';
import type { DeliveryPage } from '../contract/deliveries.ts';
import { DaemonError } from './api/client.ts';
import { type StreamEvent, serverSentEvents } from './api/server-sent-events.ts';
import type { Context } from './context.ts';
import { EXIT, type ExitCode, Failure } from './failure.ts';
import { oneLine, parseEvent } from './listen/received-event.ts';
import { pause } from './pause.ts';
import { eventLine } from './terminal/event-line.ts';
import { printable } from './terminal/printable.ts';

const RECONNECT_MS = 1_000;

/** Prints the events kept after `since`, up to the newest at this time. Source: contract section 4, `GET /events/stream`. */
export async function events(context: Context, since = 0): Promise<ExitCode> {
  const newest = await newestSequence(context);
  if (newest <= since) return EXIT.ok;
  const reader = new StreamReader(context, since);
  await reader.read(newest);
  if (reader.position >= newest) return EXIT.ok;
  throw new Failure(EXIT.unreachable, `${context.client.shown} ended the stream before event #${newest}`);
}

/**
 * Prints events as they are committed, those after `since` first (default: none), until `interrupted`. A lost
 * connection is made again and goes on where it ended.
 */
export async function followEvents(
  context: Context,
  interrupted: AbortSignal,
  since?: number,
): Promise<ExitCode> {
  const reader = new StreamReader(context, since ?? (await newestSequence(context)));
  while (!interrupted.aborted) {
    try {
      await reader.read(Number.POSITIVE_INFINITY, interrupted);
      if (!interrupted.aborted) await context.err.line('the connection was lost; trying again');
    } catch (error) {
      if (!interrupted.aborted && !(reader.connected && isPassing(error))) throw error;
    }
    await pause(RECONNECT_MS, interrupted);
  }
  return EXIT.ok;
}

/** Reads the stream in as many connections as it takes. */
class StreamReader {
  /** The sequence of the last event that was printed, from which a connection goes on. */
  position: number;
  /** Whether the daemon has ever accepted. */
  connected = false;
  readonly #context: Context;

  constructor(context: Context, since: number) {
    this.#context = context;
    this.position = since;
  }

  /** Prints until the connection ends, `signal` aborts or the event `last` is printed. */
  async read(last: number, signal?: AbortSignal): Promise<void> {
    const body = await this.#context.client.stream('/events/stream', {
      headers: { accept: 'text/event-stream', 'last-event-id': String(this.position) },
      ...(signal ? { signal } : {}),
    });
    this.connected = true;
    try {
      for await (const { id, data } of untilBroken(body)) {
        await this.#print(data);
        this.position = Number(id);
        if (this.position >= last) break;
      }
    } finally {
      body.destroy();
    }
  }

  #print(data: string): Promise<void> {
    const { out, json } = this.#context;
    if (json) return out.json(oneLine(data));
    const event = parseEvent(data);
    return out.line(event ? eventLine(event, out) : printable(data));
  }
}

/** A connection that breaks is an end like any other: the next one goes on from the position. */
async function* untilBroken(body: IncomingMessage): AsyncGenerator<StreamEvent> {
  try {
    yield* serverSentEvents(body);
  } catch (error) {
    if (error instanceof Failure) throw error;
  }
}

/** Whether a daemon that is starting or stopping explains it. */
function isPassing(error: unknown): boolean {
  if (error instanceof DaemonError) return error.code === 'shutting_down';
  return error instanceof Failure && error.exit_code === EXIT.unreachable;
}

/** The highest sequence that is kept, 0 where nothing is; records of another sandbox have their own order. */
async function newestSequence({ client }: Context): Promise<number> {
  const { deliveries } = await client.call<DeliveryPage>('GET', '/webhook/deliveries');
  return deliveries.find(({ state }) => state !== 'foreign')?.sequence ?? 0;
}
