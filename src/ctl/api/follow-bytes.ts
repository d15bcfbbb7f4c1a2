import type { IncomingMessage } from 'node:http';
import { OUTPUT_STREAMS, type OutputStream, type ProcessView } from '../../contract/processes.ts';
import type { Context } from '../context.ts';
import { pause } from '../pause.ts';
import { OutputSink } from '../terminal/output-sink.ts';
import { type Client, DaemonError } from './client.ts';
import { processPath } from './follow-output.ts';
import { RECONNECT_MS, type ReconnectingReader, readToEnd, tellLost } from './reconnecting.ts';

const TYPE = 'application/octet-stream';

/**
 * Writes all output of a process, as it is, to this program's own streams until the process has ended, and resolves with it, or
 * until `interrupted`, and resolves with null. Each stream has a connection of its own, on which its bytes come as they
 * are, for a fraction of what events cost; in which order the two were written is not seen. A lost connection is reopened
 * where it ended. Contract section 4, `GET /processes/{id}/output`.
 */
export async function followBytes(
  context: Context,
  process_id: string,
  interrupted: AbortSignal,
): Promise<ProcessView | null> {
  const sink = new OutputSink(context, true);
  const readers = OUTPUT_STREAMS.map((stream) => new ByteReader(context.client, process_id, stream, sink));
  const onLost = oncePerReconnect(() => tellLost(context));
  const view: ReconnectingReader<ProcessView> = {
    connected: true,
    read: (signal) => context.client.call('GET', processPath(process_id), { signal }),
  };
  while (!interrupted.aborted) {
    await readAll(readers, interrupted, onLost);
    const process = await readToEnd(view, interrupted, onLost);
    if (process?.exited_at !== null) return process;
    // A server in between has ended the answers: they go on.
    await pause(RECONNECT_MS, interrupted);
  }
  return null;
}

/** Resolves when every stream has ended, or rejects with the first failure, which ends the others. */
async function readAll(
  readers: ReconnectingReader<'end'>[],
  interrupted: AbortSignal,
  onLost: () => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const stop = AbortSignal.any([interrupted, failed.signal]);
  try {
    await Promise.all(readers.map((reader) => readToEnd(reader, stop, onLost)));
  } finally {
    failed.abort();
  }
}

/** Both connections to a daemon that dies are lost at once. */
function oncePerReconnect(tell: () => Promise<void>): () => Promise<void> {
  let told_ms = Number.NEGATIVE_INFINITY;
  return async () => {
    const now_ms = performance.now();
    if (now_ms - told_ms < RECONNECT_MS) return;
    told_ms = now_ms;
    await tell();
  };
}

/** Reads one stream as bytes. */
class ByteReader implements ReconnectingReader<'end'> {
  readonly connected = true;
  readonly #client: Client;
  readonly #path: string;
  readonly #stream: OutputStream;
  readonly #sink: OutputSink;
  /** Where the next answer is to begin; null for the oldest byte that is kept. */
  #offset: number | null = null;

  constructor(client: Client, process_id: string, stream: OutputStream, sink: OutputSink) {
    this.#client = client;
    this.#path = `${processPath(process_id)}/output`;
    this.#stream = stream;
    this.#sink = sink;
  }

  async read(signal: AbortSignal): Promise<'end' | 'lost'> {
    const body = await this.#open(signal);
    try {
      const offset = Number(body.headers['x-output-offset']);
      if (!Number.isSafeInteger(offset)) {
        throw new DaemonError(null, `${this.#client.shown} answered without X-Output-Offset`);
      }
      await this.#write(offset, Buffer.alloc(0));
      return await this.#copy(body, offset);
    } finally {
      body.destroy();
    }
  }

  async #open(signal: AbortSignal): Promise<IncomingMessage> {
    const offset = this.#offset ?? undefined;
    const query = { stream: this.#stream, follow: 'true', lossless: 'true', offset };
    try {
      return await this.#client.stream(this.#path, { type: TYPE, headers: { accept: TYPE }, query, signal });
    } catch (error) {
      if (error instanceof DaemonError && error.code === 'gone') this.#offset = null;
      throw error;
    }
  }

  async #copy(body: IncomingMessage, from: number): Promise<'end' | 'lost'> {
    const pieces = body[Symbol.asyncIterator]();
    for (let offset = from; ; ) {
      const piece = await pieces.next().catch(() => null);
      if (!piece) return 'lost';
      if (piece.done) return 'end';
      await this.#write(offset, piece.value);
      offset += piece.value.length;
    }
  }

  async #write(offset: number, bytes: Buffer): Promise<void> {
    await this.#sink.write(this.#stream, offset, bytes);
    this.#offset = offset + bytes.length;
  }
}
