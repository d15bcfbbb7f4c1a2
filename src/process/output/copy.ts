import type { Writable } from 'node:stream';
import type { OutputStream } from '../../contract/processes.ts';
import { type OutputSource, readOutput } from './output-reader.ts';

/**
 * Copies a stream of a process to `target` until the process has ended or `signal` aborts. It follows the kept output
 * like any reader: a slow target delays nothing else, and loses output if it falls too far behind. A target that is
 * closed or fails ends the copy.
 */
export async function copyOutput(
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
