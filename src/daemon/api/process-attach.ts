import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import type { RawData, WebSocket } from 'ws';
import type { Clock } from '../../base/clock.ts';
import { keepHeapSmall } from '../../base/engine/heap.ts';
import type { HttpExchange } from '../../base/http/app.ts';
import { isUpgrade, takeUpgrade } from '../../base/http/listener.ts';
import { BODY_MAX_BYTES } from '../../contract/defaults.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type { AttachQuery } from '../../contract/processes.ts';
import { OUTPUT_STREAMS } from '../../contract/words.ts';
import type { OutputItems } from '../../process/output/output-reader.ts';
import type { Supervisor } from '../../process/supervisor.ts';
import { type AttachFrame, type AttachFrames, PROCESS_FRAMES } from './attach-frame.ts';
import { SocketHeartbeat } from './socket-heartbeat.ts';

/** The slice of the daemon that an attached client uses. */
export interface AttachContext {
  readonly clock: Clock;
  readonly supervisor: Pick<Supervisor, 'output' | 'writeStdin' | 'resize' | 'signal'>;
}

/** The most unread stdin of a process before the connection is no longer read. */
const STDIN_PENDING_BYTES = BODY_MAX_BYTES;
const NORMAL_CLOSURE = 1000;
const POLICY_VIOLATION = 1008;
/** Malformed frames until the connection is closed. */
const BAD_FRAMES_MAX = 16;
/** The cost of a waiting stdin frame in addition to its bytes. */
const FRAME_COST_BYTES = 1024;

/**
 * Answers `GET /processes/{id}/attach` with a WebSocket. Invalid requests are refused in the handshake; a frame that
 * fails is answered with a frame of type `error`. Source: contract section 4.
 */
export async function answerAttach(
  daemon: AttachContext,
  process_id: string,
  { offset, lossless }: Static<typeof AttachQuery>,
  { request, reply }: HttpExchange,
  frames: AttachFrames = PROCESS_FRAMES,
): Promise<void> {
  checkHandshake(request);
  keepHeapSmall();
  const gone = new AbortController();
  const items = await daemon.supervisor.output(process_id, {
    streams: OUTPUT_STREAMS,
    ...(offset === undefined ? {} : { start: { offset } }),
    follow: true,
    whole_characters: true,
    lossless,
    onDropped: () => request.raw.socket.destroy(),
    signal: gone.signal,
  });
  const { WebSocketServer } = await import('ws');
  const upgrade = takeUpgrade(request, reply);
  if (!upgrade) return gone.abort();
  const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: BODY_MAX_BYTES });
  server.handleUpgrade(request.raw, upgrade.socket, upgrade.head, (socket) => {
    socket.once('close', () => gone.abort());
    void new Attachment(daemon, process_id, { socket, frames, gone: gone.signal }).run(items);
  });
}

/** Throws `invalid_request` unless a request can become a WebSocket. */
export function checkHandshake(request: FastifyRequest): void {
  const { headers } = request;
  if (!isUpgrade(request)) throw invalidField('Upgrade', 'must be websocket');
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')) {
    throw invalidField('Sec-WebSocket-Key', 'is missing or malformed');
  }
  if (headers['sec-websocket-version'] !== '13') throw invalidField('Sec-WebSocket-Version', 'must be 13');
}

/** One client attached to a process. */
class Attachment {
  readonly #daemon: AttachContext;
  readonly #process_id: string;
  readonly #socket: WebSocket;
  readonly #forms: AttachFrames;
  readonly #gone: AbortSignal;
  readonly #heartbeat: SocketHeartbeat;
  /** Received frames. The connection is not read while there are any. */
  readonly #frames: { data: RawData; is_binary: boolean }[] = [];
  #bad_frames = 0;
  #pending_bytes = 0;
  #room = Promise.withResolvers<void>();

  constructor(
    daemon: AttachContext,
    process_id: string,
    { socket, frames, gone }: { socket: WebSocket; frames: AttachFrames; gone: AbortSignal },
  ) {
    this.#daemon = daemon;
    this.#process_id = process_id;
    this.#socket = socket;
    this.#forms = frames;
    this.#gone = gone;
    this.#heartbeat = new SocketHeartbeat(daemon.clock, socket);
    socket.on('error', () => {}); // 'close' follows.
    socket.on('message', (data, is_binary) => {
      this.#frames.push({ data, is_binary });
      if (this.#frames.length === 1) void this.#handleAll();
    });
  }

  /** Sends the output piece by piece, then the process's end. */
  async run(items: OutputItems): Promise<void> {
    try {
      for await (const item of items) {
        if (item.type === 'output') await this.#send(this.#forms.output(item));
        if (item.type === 'exit') await this.#send(this.#forms.exit(item.process));
      }
      this.#socket.close(NORMAL_CLOSURE);
    } catch {
      this.#socket.terminate();
    } finally {
      this.#heartbeat.stop();
    }
  }

  /** Handles one frame after another. */
  async #handleAll(): Promise<void> {
    this.#socket.pause();
    for (const { data, is_binary } of this.#frames) {
      if (this.#gone.aborted || this.#socket.readyState !== this.#socket.OPEN) break;
      await this.#handle(data, is_binary);
    }
    this.#frames.length = 0;
    this.#socket.resume();
  }

  async #handle(data: RawData, is_binary: boolean): Promise<void> {
    try {
      const frame = this.#parse(data, is_binary);
      if (frame.type === 'stdin') await this.#write(frame);
      else this.#apply(frame);
    } catch (error) {
      await this.#refuse(error);
    }
  }

  #parse(data: RawData, is_binary: boolean): AttachFrame {
    try {
      return this.#forms.parse(data as Buffer, is_binary);
    } catch (error) {
      this.#bad_frames += 1;
      throw error;
    }
  }

  async #refuse(error: unknown): Promise<void> {
    if (this.#gone.aborted) return;
    const known = error instanceof ApiError ? error : new ApiError('internal_error');
    await this.#send(this.#forms.error(known));
    if (this.#bad_frames >= BAD_FRAMES_MAX) this.#socket.close(POLICY_VIOLATION, 'too many malformed frames');
  }

  #apply(frame: Exclude<AttachFrame, { type: 'stdin' }>): void {
    const { supervisor } = this.#daemon;
    if (frame.type === 'resize') supervisor.resize(this.#process_id, frame.size);
    else supervisor.signal(this.#process_id, frame.signal);
  }

  /** Returns before the process has read the data, so that signals overtake it; waits only while too much is unread. */
  async #write({ data, end = false }: AttachFrame & { type: 'stdin' }): Promise<void> {
    const cost_bytes = data.length + FRAME_COST_BYTES;
    while (this.#pending_bytes >= STDIN_PENDING_BYTES && !this.#gone.aborted) await this.#room.promise;
    this.#pending_bytes += cost_bytes;
    void this.#daemon.supervisor
      .writeStdin(this.#process_id, { data: [data], end, signal: this.#gone })
      .catch((error) => this.#refuse(error))
      .finally(() => {
        this.#pending_bytes -= cost_bytes;
        this.#room.resolve();
        this.#room = Promise.withResolvers();
      });
  }

  #send(text: string): Promise<void> {
    return new Promise((resolve) => this.#socket.send(text, () => resolve()));
  }
}
