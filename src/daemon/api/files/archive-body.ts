import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Exchange } from '../process-output.ts';
import { BodyWriter } from './body-writer.ts';

/** Sends an archive as it is made. What goes wrong from now on breaks the connection: an archive is whole, or no answer. */
export async function sendArchive(
  archive: AsyncGenerator<Buffer, void>,
  format: 'tar' | 'tar.gz',
  gone: AbortSignal,
  { request, reply }: Exchange,
): Promise<void> {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    'content-type': format === 'tar' ? 'application/x-tar' : 'application/gzip',
    'cache-control': 'no-store',
    'x-request-id': request.id,
  });
  const body = new BodyWriter(raw, gone);
  try {
    let sent = Promise.resolve();
    for await (const chunk of format === 'tar' ? archive : gzipped(archive)) {
      await sent;
      sent = body.write(chunk);
    }
    await sent;
    raw.end();
  } catch {
    raw.destroy();
  } finally {
    await archive.return();
  }
}

function gzipped(archive: AsyncGenerator<Buffer, void>): AsyncIterable<Buffer> {
  const source = Readable.from(archive, { objectMode: false });
  const gzip = createGzip();
  source.once('error', (error) => gzip.destroy(error));
  gzip.once('close', () => source.destroy());
  return source.pipe(gzip);
}
