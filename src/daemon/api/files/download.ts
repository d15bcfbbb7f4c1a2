import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { OutgoingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../../base/clock.ts';
import { keepHeapSmall } from '../../../base/engine/heap.ts';
import type { HttpExchange } from '../../../base/http/app.ts';
import { disconnectSignal } from '../../../base/http/sse-response.ts';
import { ApiError } from '../../../contract/errors.ts';
import { parseRange } from '../../../files/byte-range.ts';
import { isRangeCurrent, readOutcome } from '../../../files/conditions.ts';
import { freeBuffer } from '../../../files/free-buffer.ts';
import type { RegularFile } from '../../../files/regular-file.ts';
import { entityTag } from '../../../files/stamp.ts';
import { BodyWriter } from './body-writer.ts';
import { DIRECT_HEADER, DIRECT_LENGTH_HEADER, type DirectBodies } from './direct-bodies.ts';

/** Less is sent by way of the daemon: to pass a connection takes a moment. */
const DIRECT_BYTES_MIN = 256 * 1024;
/** Large enough that the hand-over between threads costs little, small enough for many downloads at once. Each has two. */
const CHUNK_BYTES = 128 * 1024;

/**
 * Answers GET and HEAD `/files` with the bytes of a file, as RFC 9110 says of conditions and ranges, and closes it. A file
 * that shrinks meanwhile breaks the connection. Throws `precondition_failed` and `range_not_satisfiable`.
 */
export async function answerDownload(
  file: RegularFile,
  clock: Clock,
  direct: DirectBodies,
  exchange: HttpExchange,
): Promise<void> {
  const { handle } = file;
  try {
    const plan = file.is_pseudo ? WHOLE_STREAM : await planOf(handle, clock, exchange);
    const { request, reply } = exchange;
    const gone = disconnectSignal(reply);
    reply.hijack();
    const { raw } = reply;
    const number = request.headers[DIRECT_HEADER];
    const length = plan.end - plan.start;
    const is_long =
      request.method === 'GET' && length >= DIRECT_BYTES_MIN && length < Number.POSITIVE_INFINITY;
    if (is_long && typeof number === 'string') {
      await sendDirectly(handle, plan, direct.connection(number, gone), exchange, gone);
      return;
    }
    raw.writeHead(plan.status, { ...plan.headers, 'cache-control': 'no-cache', 'x-request-id': request.id });
    if (request.method === 'HEAD' || plan.start === plan.end) {
      raw.end();
      return;
    }
    keepHeapSmall();
    const body = new BodyWriter(raw, gone);
    await sendBytes(handle, plan, body).then(
      () => raw.end(),
      () => raw.destroy(),
    );
  } finally {
    await handle.close();
  }
}

/** Sends the head by way of the daemon, and the body past it, to the client's connection. */
async function sendDirectly(
  handle: FileHandle,
  plan: Plan,
  connection: Promise<Socket | null>,
  { request, reply: { raw } }: HttpExchange,
  gone: AbortSignal,
): Promise<void> {
  const { 'content-length': length, ...headers } = plan.headers;
  raw.writeHead(plan.status, {
    ...headers,
    [DIRECT_LENGTH_HEADER]: length,
    'cache-control': 'no-cache',
    'x-request-id': request.id,
  });
  raw.flushHeaders();
  const socket = await connection;
  keepHeapSmall();
  try {
    if (socket) await sendBytes(handle, plan, new BodyWriter(socket, gone));
    // What says that the body is whole.
    raw.end();
  } catch {
    raw.destroy();
  } finally {
    // Closes this process's side of it alone.
    socket?.destroy();
  }
}

interface Plan {
  status: number;
  headers: OutgoingHttpHeaders;
  start: number;
  /** Infinite for a stream that ends where it ends. */
  end: number;
}

const TYPE = { 'content-type': 'application/octet-stream' };

/** Of a file whose content the kernel makes while it is read. */
const WHOLE_STREAM: Plan = {
  status: 200,
  headers: { ...TYPE, 'accept-ranges': 'none' },
  start: 0,
  end: Number.POSITIVE_INFINITY,
};

async function planOf(handle: FileHandle, clock: Clock, { request, reply }: HttpExchange): Promise<Plan> {
  const { headers, method } = request;
  const { etag, stat } = await entityTag(handle, clock);
  const version = { etag, modified_ms: stat.mtimeMs };
  const common = { etag, 'last-modified': lastModified(stat, clock), 'accept-ranges': 'bytes' };
  const outcome = readOutcome(headers, version, clock.wallMs());
  if (outcome === 'failed') throw new ApiError('precondition_failed', undefined, { etag });
  if (outcome === 'not_modified') return { status: 304, headers: common, start: 0, end: 0 };
  const is_ranged = method === 'GET' && isRangeCurrent(headers['if-range'], version);
  const range = is_ranged ? parseRange(headers.range, stat.size) : null;
  if (range === 'unsatisfiable') {
    reply.header('content-range', `bytes */${stat.size}`);
    throw new ApiError('range_not_satisfiable', undefined, { size: stat.size });
  }
  const { start, end } = range ?? { start: 0, end: stat.size };
  const content_range = range ? { 'content-range': `bytes ${start}-${end - 1}/${stat.size}` } : {};
  return {
    status: range ? 206 : 200,
    headers: { ...TYPE, ...common, ...content_range, 'content-length': end - start },
    start,
    end,
  };
}

/** No answer tells of a time that is still to come. RFC 9110, section 8.8.2.1. */
function lastModified({ mtimeMs: modified_ms }: Stats, clock: Clock): string {
  return new Date(Math.min(modified_ms, clock.wallMs())).toUTCString();
}

/** Reads the next chunk while the one before is sent. */
async function sendBytes(handle: FileHandle, { start, end }: Plan, body: BodyWriter): Promise<void> {
  const size_bytes = Math.min(CHUNK_BYTES, end - start);
  const chunks = [Buffer.allocUnsafeSlow(size_bytes), Buffer.allocUnsafeSlow(size_bytes)] as const;
  let position = start;
  let sent = Promise.resolve();
  for (let turn = 0; position < end; turn ^= 1) {
    const chunk = chunks[turn as 0 | 1];
    const length = Math.min(size_bytes, end - position);
    const read = handle.read(chunk, 0, length, end === Number.POSITIVE_INFINITY ? null : position);
    const [{ bytesRead: bytes_read }] = await Promise.all([read.catch(endOfStream(end)), sent]);
    if (bytes_read === 0) {
      if (end === Number.POSITIVE_INFINITY) return;
      throw new Error('the file has shrunk');
    }
    sent = body.write(chunk.subarray(0, bytes_read));
    position += bytes_read;
  }
  await sent;
  for (const chunk of chunks) freeBuffer(chunk);
}

/** A stream of the kernel's that has no more for now, such as its log, ends here. */
function endOfStream(end: number): (error: NodeJS.ErrnoException) => { bytesRead: number } {
  return (error) => {
    if (end === Number.POSITIVE_INFINITY && error.code === 'EAGAIN') return { bytesRead: 0 };
    throw error;
  };
}
