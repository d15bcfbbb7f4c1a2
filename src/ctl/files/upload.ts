import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable, Transform } from 'node:stream';
import { systemClock } from '../../base/clock.ts';
import { Pack } from '../../files/archive/pack.ts';
import { bytePath, systemPath } from '../../files/byte-path.ts';
import { Directory } from '../../files/directory.ts';
import { OwnPlaces } from '../../files/own-places.ts';
import type { Context } from '../context.ts';
import { EXIT, Failure } from '../failure.ts';
import { Progress } from './progress.ts';
import type { AsUser } from './sandbox-files.ts';

const PERMISSIONS = 0o777;

/** Writes a local file to a path of the sandbox, with its mode. */
export async function uploadFile(context: Context, from: string, to: string, as: AsUser): Promise<void> {
  const { size, mode } = await stat(from);
  const query = { path: to, mode: `0${(mode & PERMISSIONS).toString(8).padStart(3, '0')}`, ...as };
  const reading = { highWaterMark: 256 * 1024 };
  // Files of the kernel, such as those in /proc, say that they are empty.
  if (size === 0) return send(context, '/files', { query }, createReadStream(from, reading), from, null);
  // What is written to it meanwhile is left out: the length is known.
  const file = createReadStream(from, { ...reading, end: size - 1 });
  await send(context, '/files', { query, headers: { 'content-length': size } }, file, from, size);
}

/** Writes stdin to a path of the sandbox. */
export async function uploadStream(context: Context, input: Readable, to: string, as: AsUser): Promise<void> {
  await send(context, '/files', { query: { path: to, ...as } }, input, 'stdin', null);
}

/** Writes what is in a local directory into one of the sandbox, which is made if it is missing. */
export async function uploadTree(context: Context, from: string, to: string, as: AsUser): Promise<void> {
  const own = new OwnPlaces([]);
  const directory = await Directory.open(systemPath(bytePath(from)), own);
  const archive = Readable.from(await Pack.ofDirectory(directory, own, new AbortController().signal), {
    objectMode: false,
  });
  const headers = { 'content-type': 'application/x-tar' };
  await send(context, '/files/archive', { query: { path: to, ...as }, headers }, archive, from, null);
}

async function send(
  { client, err }: Context,
  path: string,
  request: { query: Record<string, string | undefined>; headers?: Record<string, string | number> },
  data: Readable,
  name: string,
  total_bytes: number | null,
): Promise<void> {
  const progress = new Progress(name, total_bytes, err, systemClock);
  let left_bytes = total_bytes ?? 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      progress.add(chunk.length);
      left_bytes -= chunk.length;
      done(null, chunk);
    },
    flush(done) {
      const is_cut = left_bytes > 0;
      done(is_cut ? new Failure(EXIT.failed, `${name} became shorter while it was copied`) : null);
    },
  });
  data.once('error', (error) => counted.destroy(error));
  await client.call('PUT', path, { ...request, body: data.pipe(counted), silence_timeout_ms: 0 });
  await progress.end();
}
