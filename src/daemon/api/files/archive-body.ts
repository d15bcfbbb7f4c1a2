import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { freeBuffer } from '../../../files/free-buffer.ts';
import type { Exchange } from '../process-output.ts';
import { BodyWriter } from './body-writer.ts';

/**
 * Sends an archive as it is made. What goes wrong before its first bytes is thrown, with the file system's errors; from
 * then on it breaks the connection.
 */
export async function sendArchive(
  archive: AsyncGenerator<Buffer, void>,
  format: 'tar' | 'tar.gz',
  gone: AbortSignal,
  { request, reply }: Exchange,
): Promise<void> {
  const { raw } = reply;
  const first = await archive.next();
  reply.hijack();
  raw.writeHead(200, {
    'content-type': format === 'tar' ? 'application/x-tar' : 'application/gzip',
    'cache-control': 'no-store',
    'x-request-id': request.id,
  });
  const body = new BodyWriter(raw, gone);
  try {
    const whole = startingWith(first, archive);
    for await (const chunk of format === 'tar' ? whole : gzipped(whole)) {
      await body.write(chunk);
      freeBuffer(chunk);
    }
    raw.end();
  } catch {
    raw.destroy();
  } finally {
    await archive.return();
  }
}

async function* startingWith(
  first: IteratorResult<Buffer, void>,
  rest: AsyncGenerator<Buffer, void>,
): AsyncGenerator<Buffer, void> {
  if (!first.done) yield first.value;
  yield* rest;
}

function gzipped(archive: AsyncGenerator<Buffer, void>): AsyncIterable<Buffer> {
  const source = Readable.from(archive, { objectMode: false });
  const gzip = createGzip();
  source.once('error', (error) => gzip.destroy(error));
  gzip.once('close', () => source.destroy());
  return source.pipe(gzip);
}
