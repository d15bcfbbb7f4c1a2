import type { Writable } from 'node:stream';
import { type Clock, sleep } from '../../base/clock.ts';
import { OUTPUT_STREAMS, type OutputStream } from '../../contract/words.ts';
import { type OutputSource, readOutput } from './output-reader.ts';

/** How long a copy may continue after the end of its process if the target is slow. */
const COPY_REST_MS = 2_000;

/** A process whose output can be copied. */
export interface CopySource extends OutputSource {
  /** Resolves when it has ended for good and its output can be read to the end. */
  drained(): Promise<void>;
}

/** Copies of processes' output to streams of the daemon, at most one per process. */
export class OutputCopies {
  readonly #clock: Clock;
  readonly #copies = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts to copy both streams to `target`, if there is one and the process is not copied already. */
  start(process_id: string, source: CopySource, target: Writable | undefined): void {
    if (!target || this.#copies.has(process_id)) return;
    const rest = new AbortController();
    void source
      .drained()
      .then(() => sleep(this.#clock, COPY_REST_MS, rest.signal))
      .then(() => rest.abort());
    const copies = OUTPUT_STREAMS.map((stream) => copyOutput(source, stream, target, rest.signal));
    const copied = Promise.allSettled(copies).then(() => rest.abort());
    this.#copies.set(process_id, copied);
  }

  /** Resolves when the copy of this process, if there is one, has ended. */
  async finished(process_id: string): Promise<void> {
    await this.#copies.get(process_id);
  }

  /** Resolves when every copy has ended. */
  async allFinished(): Promise<void> {
    await Promise.all([...this.#copies.values()]);
  }

  /** Forgets the copy of a process that is removed. */
  forget(process_id: string): void {
    this.#copies.delete(process_id);
  }
}

/**
 * Copies a stream of a process to `target` until the process has ended or `signal` aborts. It follows the kept output
 * like any reader: a slow target delays nothing else, and loses output if it falls too far behind. A target that is
 * closed or fails ends the copy.
 */
async function copyOutput(
  source: OutputSource,
  stream: OutputStream,
  target: Writable,
  signal: AbortSignal,
): Promise<void> {
  const broken = new AbortController();
  const stop = () => broken.abort();
  target.on('error', stop).on('close', stop);
  const until = AbortSignal.any([signal, broken.signal]);
  try {
    for await (const item of await readOutput(source, { streams: [stream], follow: true, signal: until })) {
      if (item.type !== 'output') continue;
      if (target.writableEnded || target.destroyed) return;
      await write(target, item.data, until);
    }
  } finally {
    target.off('close', stop); // 'error' stays handled: a late EPIPE must not end the daemon
  }
}

/** Resolves when the target no longer needs the bytes, or `signal` aborts. */
function write(target: Writable, data: Buffer, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    signal.addEventListener('abort', done);
    target.write(data, done);
  });
}
