import type { IncomingMessage } from 'node:http';
import type { ProcessView } from '../../contract/processes.ts';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import { OutputSink } from '../terminal/output-sink.ts';
import { DaemonError, pathSegment } from './client.ts';
import { type ReconnectingReader, readToEnd, tellLost } from './reconnecting.ts';
import { serverSentEvents } from './server-sent-events.ts';

/** Which output to print. */
export interface FollowOptions {
  stream?: 'stdout' | 'stderr' | 'all' | undefined;
  /** Starts this many lines before the end; without it, at the oldest that is kept. */
  tail_lines?: number | undefined;
  /** Whether to continue until the process ends. */
  follow: boolean;
  /** Whether to hold the process up rather than miss output. */
  lossless?: boolean;
  /** Whether the daemon has accepted a request before, so that even the first connection is retried. */
  is_known?: boolean;
  /** Whether a terminal gets the output as it is; otherwise what it would act upon is escaped, but for colours. */
  is_raw: boolean;
}

/**
 * Writes a process's output to this program's own streams. With `follow` it continues until the process has ended, and
 * resolves with it, or until `interrupted`, and resolves with null. A lost connection is reopened where it ended.
 * Contract section 4, `GET /processes/{id}/output`.
 */
export async function followOutput(
  context: Context,
  process_id: string,
  options: FollowOptions,
  interrupted: AbortSignal,
): Promise<ProcessView | null> {
  const reader = new EventReader(context, process_id, options);
  try {
    return await readToEnd(reader, interrupted, () => tellLost(context));
  } finally {
    await reader.end();
  }
}

/** The API path of one process, with any characters in its id. */
export function processPath(process_id: string): string {
  return `/processes/${pathSegment(process_id)}`;
}

/** Reads both streams as server-sent events, in the order in which the daemon has read them. */
class EventReader implements ReconnectingReader<ProcessView | null> {
  connected: boolean;
  readonly #context: Context;
  readonly #path: string;
  readonly #options: FollowOptions;
  readonly #sink: OutputSink;
  #last_id: string | null = null;

  constructor(context: Context, process_id: string, options: FollowOptions) {
    this.#context = context;
    this.#path = `${processPath(process_id)}/output`;
    this.#options = options;
    this.#sink = new OutputSink(context, options.is_raw);
    this.connected = options.is_known ?? false;
  }

  /** The end: the ended process, or null at the end of a running one's stored output. */
  async read(signal: AbortSignal): Promise<ProcessView | null | 'lost'> {
    const { stream, tail_lines, follow, lossless } = this.#options;
    const query = { stream, follow: String(follow), tail_lines, lossless: lossless ? 'true' : undefined };
    const body = await this.#open(query, signal);
    this.connected = true;
    try {
      return await this.#copy(body);
    } finally {
      body.destroy();
    }
  }

  /** Writes what was held back because more might have come. */
  end(): Promise<void> {
    return this.#sink.end();
  }

  async #open(query: Record<string, string | number | undefined>, signal: AbortSignal) {
    const last_id = this.#last_id;
    const type = 'text/event-stream';
    const accept = { accept: type };
    const headers = last_id === null ? accept : { ...accept, 'last-event-id': last_id };
    try {
      return await this.#context.client.stream(this.#path, { type, query, headers, signal });
    } catch (error) {
      // The position is no longer kept: the sink reports what is missing once it sees the next offset.
      if (error instanceof DaemonError && error.code === 'gone') this.#last_id = null;
      throw error;
    }
  }

  async #copy(body: IncomingMessage): Promise<ProcessView | null | 'lost'> {
    const events = serverSentEvents(body);
    for (;;) {
      const next = await events.next().catch((error: unknown) => {
        if (error instanceof Failure) throw error;
        return 'broken' as const;
      });
      if (next === 'broken') return 'lost';
      if (next.done) return this.#options.follow ? 'lost' : null;
      const { id, event, data } = next.value;
      if (event === 'output') await this.#sink.take(JSON.parse(data));
      if (event === 'exit') return JSON.parse(data);
      this.#last_id = id;
    }
  }
}
