import type { IncomingMessage } from 'node:http';
import { OUTPUT_STREAMS, type OutputStream, type ProcessView } from '../../contract/processes.ts';
import type { Context } from '../context.ts';
import { pause } from '../pause.ts';
import { DaemonError } from './client.ts';
import { processPath } from './follow-output.ts';
import { RECONNECT_MS, type Reader, readToEnd, tellLost } from './reconnecting.ts';

const TYPE = 'application/octet-stream';

/**
 * Writes all output of a process to this program's own streams until the process has ended, and resolves with it, or
 * until `interrupted`, and resolves with null. Each stream has a connection of its own, on which its bytes come as they
 * are, for a fraction of what events cost; in which order the two were written is not seen. A lost connection is reopened
 * where it ended. Contract section 4, `GET /processes/{id}/output`.
 */
export async function followBytes(
  context: Context,
  process_id: string,
  interrupted: AbortSignal,
): Promise<ProcessView | null> {
  const readers = OUTPUT_STREAMS.map((stream) => new ByteReader(context, process_id, stream));
  const onLost = oncePerReconnect(() => tellLost(context));
  const view: Reader<ProcessView> = {
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
  readers: Reader<'end'>[],
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
class ByteReader implements Reader<'end'> {
  readonly connected = true;
  readonly #context: Context;
  readonly #path: string;
  readonly #stream: OutputStream;
  /** The offset after the last byte written; null before the first. */
  #next: number | null = null;
  #is_kept = true;

  constructor(context: Context, process_id: string, stream: OutputStream) {
    this.#context = context;
    this.#path = `${processPath(process_id)}/output`;
    this.#stream = stream;
  }

  async read(signal: AbortSignal): Promise<'end' | 'lost'> {
    const body = await this.#open(signal);
    try {
      await this.#begin(Number(body.headers['x-output-offset']));
      return await this.#copy(body);
    } finally {
      body.destroy();
    }
  }

  async #open(signal: AbortSignal): Promise<IncomingMessage> {
    const offset = this.#is_kept ? (this.#next ?? undefined) : undefined;
    const query = { stream: this.#stream, follow: 'true', lossless: 'true', offset };
    try {
      return await this.#context.client.stream(this.#path, {
        type: TYPE,
        headers: { accept: TYPE },
        query,
        signal,
      });
    } catch (error) {
      if (error instanceof DaemonError && error.code === 'gone') this.#is_kept = false;
      throw error;
    }
  }

  /** Reports what is missing before the first byte of an answer. */
  async #begin(offset: number): Promise<void> {
    if (!Number.isSafeInteger(offset)) {
      throw new DaemonError(null, `${this.#context.client.shown} answered without X-Output-Offset`);
    }
    const missing = offset - (this.#next ?? offset);
    if (missing > 0) {
      await this.#context.err.line(`sandboxctl: ${missing} bytes of ${this.#stream} are no longer kept`);
    }
    this.#next = offset;
    this.#is_kept = true;
  }

  async #copy(body: IncomingMessage): Promise<'end' | 'lost'> {
    const output = this.#stream === 'stdout' ? this.#context.out : this.#context.err;
    const pieces = body[Symbol.asyncIterator]();
    for (;;) {
      const piece = await pieces.next().catch(() => null);
      if (!piece) return 'lost';
      if (piece.done) return 'end';
      await output.write(piece.value);
      this.#next = (this.#next ?? 0) + piece.value.length;
    }
  }
}
