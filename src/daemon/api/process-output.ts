import { isUtf8 } from 'node:buffer';
import type { FastifyReply } from 'fastify';
import type { Static } from 'typebox';
import type { Clock } from '../../base/clock.ts';
import { keepHeapSmall } from '../../base/engine/heap.ts';
import type { HttpExchange } from '../../base/http/app.ts';
import { disconnectSignal, pacedWrite, SseResponse } from '../../base/http/sse-response.ts';
import { OUTPUT_ANSWER_BYTES } from '../../contract/defaults.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type { OutputPosition, OutputQuery } from '../../contract/processes.ts';
import { OUTPUT_STREAMS, type OutputStream } from '../../contract/words.ts';
import type { OutputItem, OutputItems, OutputStart, OutputTail } from '../../process/output/output-reader.ts';
import { continuationBytes } from '../../process/output/preview.ts';
import type { Supervisor } from '../../process/supervisor.ts';

/** The slice of the daemon that reading output uses. */
export interface OutputContext {
  readonly clock: Clock;
  readonly supervisor: Pick<Supervisor, 'output'>;
}

const STARTS = ['offset', 'tail_bytes', 'tail_lines'] as const;

/** Answers `GET /processes/{id}/output` with server-sent events or the bytes of one stream. Contract section 4. */
export async function answerOutput(
  daemon: OutputContext,
  process_id: string,
  query: Static<typeof OutputQuery>,
  { request, reply }: HttpExchange,
): Promise<void> {
  const { stream, follow, lossless } = query;
  if (lossless && !follow) throw invalidField('lossless', 'is accepted only together with follow');
  const streams = stream === 'all' ? OUTPUT_STREAMS : [stream];
  const start = startOf(query, request.headers['last-event-id']);
  const as_bytes = (request.headers.accept ?? '').includes('application/octet-stream');
  if (as_bytes && streams.length > 1) {
    throw invalidField('stream', 'must be stdout or stderr for application/octet-stream');
  }
  if (follow) keepHeapSmall();
  const gone = disconnectSignal(reply);
  const items = await daemon.supervisor.output(process_id, {
    streams,
    start,
    follow,
    whole_characters: !as_bytes,
    lossless,
    onDropped: () => reply.raw.destroy(),
    signal: gone,
  });
  if (!as_bytes) return sendEvents(items, new SseResponse(request, reply, daemon.clock));
  reply.hijack();
  reply.raw.writeHead(200, {
    'content-type': 'application/octet-stream',
    'cache-control': 'no-store',
    'x-request-id': request.id,
    'x-output-offset': String(items.start[streams[0] as OutputStream]),
  });
  reply.raw.flushHeaders();
  await sendBytes(items, reply);
}

/** So much of a piece shows what the rest is like. */
const SAMPLE_BYTES = 1024;
const SPACE = 0x20;
const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * A piece of output as JSON: these fields, `stream`, `offset` (of its first byte in the stream) and `data`, which is text
 * if it is valid UTF-8, and base64 with `encoding` otherwise, or for a long piece that is mostly control characters.
 */
export function outputJson({ stream, offset, data }: OutputItem & { type: 'output' }, fields = {}): string {
  if (isUtf8(data) && !isMostlyControls(data))
    return JSON.stringify({ ...fields, stream, offset, data: data.toString('utf8') });
  const others = JSON.stringify({ ...fields, stream, offset, encoding: 'base64' });
  // Base64 needs no escapes: a flood of it is not gone through once more.
  return `${others.slice(0, -1)},"data":"${data.toString('base64')}"}`;
}

/** Whether these bytes, such as zeros, are no text to anyone: as JSON each would be an escape of six characters. */
function isMostlyControls(data: Buffer): boolean {
  if (data.length < SAMPLE_BYTES) return false;
  let controls = 0;
  for (let i = 0; i < SAMPLE_BYTES; i++) {
    const byte = data[i] as number;
    if (byte < SPACE && byte !== TAB && byte !== LINE_FEED && byte !== CARRIAGE_RETURN) controls += 1;
  }
  return controls > SAMPLE_BYTES / 2;
}

/** The end of both streams as text, and whether there was more before it. */
export type OutputTexts = Omit<OutputTail, 'stdout' | 'stderr'> & { stdout: string; stderr: string };

/** The last 1 MiB of each stream of a process, as far as it can be read now. */
export async function outputTexts(
  supervisor: Pick<Supervisor, 'outputTail'>,
  process_id: string,
): Promise<OutputTexts> {
  const tail = await supervisor.outputTail(process_id, OUTPUT_ANSWER_BYTES);
  const { stdout_truncated, stderr_truncated } = tail;
  return {
    stdout: textOf(tail.stdout, stdout_truncated),
    stderr: textOf(tail.stderr, stderr_truncated),
    stdout_truncated,
    stderr_truncated,
  };
}

/** Replaces invalid UTF-8 with U+FFFD; drops a character whose first bytes were cut off. */
function textOf(tail: Buffer, is_cut: boolean): string {
  return tail.subarray(is_cut ? continuationBytes(tail, 0) : 0).toString('utf8');
}

async function sendEvents(items: OutputItems, writer: SseResponse): Promise<void> {
  try {
    for await (const item of items) {
      const data = eventData(item);
      await writer.write({ id: eventId(item.position), event: item.type, data });
    }
    writer.end();
  } catch {
    writer.cut();
  }
}

function eventData(item: OutputItem): string {
  if (item.type === 'output') return outputJson(item);
  if (item.type === 'exit') return JSON.stringify(item.process);
  return JSON.stringify({ stream: item.stream, offset: item.offset });
}

/** This form cannot express missing bytes, so the answer is cut off at a gap. */
async function sendBytes(items: OutputItems, reply: FastifyReply): Promise<void> {
  const write = pacedWrite(reply);
  try {
    for await (const item of items) {
      if (item.type === 'gone') throw new ApiError('gone');
      if (item.type === 'output') await write(item.data);
    }
    reply.raw.end();
  } catch {
    reply.raw.destroy();
  }
}

/** `Last-Event-ID` takes precedence: a client that reconnects repeats the query of its first request. */
function startOf(
  query: Static<typeof OutputQuery>,
  last_event_id: string | string[] | undefined,
): OutputStart {
  const [first, second] = STARTS.filter((name) => query[name] !== undefined);
  if (second) throw invalidField(second, `is not accepted together with ${first}`);
  if (last_event_id !== undefined) return { offsets: positionOf(last_event_id) };
  return first ? ({ [first]: query[first] } as unknown as OutputStart) : { offsets: {} };
}

function eventId({ stdout, stderr }: OutputPosition): string {
  return `${stdout}-${stderr}`;
}

function positionOf(event_id: string | string[]): OutputPosition {
  const [, stdout, stderr] = /^(\d{1,15})-(\d{1,15})$/.exec(String(event_id)) ?? [];
  if (stdout === undefined) throw invalidField('Last-Event-ID', 'must be the id of an output event');
  return { stdout: Number(stdout), stderr: Number(stderr) };
}
