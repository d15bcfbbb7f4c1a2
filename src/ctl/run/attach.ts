import type { ReadStream, WriteStream } from 'node:tty';
import type { RawData, WebSocket } from 'ws';
import type { ProcessView } from '../../contract/processes.ts';
import type { PtySize } from '../../contract/schema/process-request.ts';
import { DaemonError } from '../api/client.ts';
import { processPath } from '../api/follow-output.ts';
import { isTemporary, RECONNECT_MS } from '../api/reconnecting.ts';
import type { Context } from '../context.ts';
import { EXIT, Failure } from '../failure.ts';
import { pause } from '../pause.ts';
import { type OutputPiece, OutputSink } from '../terminal/output-sink.ts';

/** Bytes received and not yet shown at which reading pauses. */
const UNSHOWN_MAX_BYTES = 256 * 1024;
/** Ctrl-D: the end of input for programs that read a terminal in raw mode, where the daemon knows of no end. */
const END_OF_FILE_KEY = Buffer.from([0x04]);

/** The user's side: the input, null where there is none, and the terminal whose size is used. */
export interface Keyboard {
  stdin: ReadStream | null;
  screen: WriteStream;
}

/** The size of a terminal; 80 × 24 where there is none. */
export function terminalSize({ columns, rows }: WriteStream): PtySize {
  return { cols: columns || 80, rows: rows || 24 };
}

/**
 * Connects this terminal to that of a process until the process has ended, or until `interrupted`, when it resolves with
 * null. A lost connection is reopened where it ended. Contract section 4, `GET /processes/{id}/attach`.
 */
export async function attach(
  context: Context,
  process_id: string,
  keyboard: Keyboard,
  interrupted: AbortSignal,
): Promise<ProcessView | null> {
  const { stdin } = keyboard;
  const attached = new AttachedTerminal(context, process_id, keyboard);
  stdin?.setRawMode?.(true);
  try {
    while (!interrupted.aborted) {
      try {
        const process = await attached.connect(interrupted);
        if (process) return process;
      } catch (error) {
        if (!isTemporary(error)) throw error;
      }
      await pause(RECONNECT_MS, interrupted);
    }
    return null;
  } finally {
    stdin?.setRawMode?.(false);
    stdin?.destroy();
  }
}

/** One terminal over as many connections as necessary. */
class AttachedTerminal {
  readonly #context: Context;
  readonly #path: string;
  readonly #keyboard: Keyboard;
  readonly #sink: OutputSink;
  #offset: number | undefined;
  #has_typed_end = false;

  constructor(context: Context, process_id: string, keyboard: Keyboard) {
    this.#context = context;
    this.#path = `${processPath(process_id)}/attach`;
    this.#keyboard = keyboard;
    this.#sink = new OutputSink(context, true);
  }

  /** Resolves with the ended process, or null if the connection was lost or `interrupted`. */
  async connect(interrupted: AbortSignal): Promise<ProcessView | null> {
    const socket = await this.#open();
    const close = () => socket.terminate();
    interrupted.addEventListener('abort', close);
    const disconnect = this.#connectKeyboard(socket);
    try {
      return await this.#show(socket);
    } finally {
      interrupted.removeEventListener('abort', close);
      disconnect();
      socket.terminate();
    }
  }

  async #open(): Promise<WebSocket> {
    try {
      return await this.#context.client.connect(this.#path, { offset: this.#offset, lossless: 'true' });
    } catch (error) {
      if (error instanceof DaemonError && error.code === 'gone') this.#offset = undefined;
      throw error;
    }
  }

  /** Sends keys and sizes from now on; returns a function that stops it. */
  #connectKeyboard(socket: WebSocket): () => void {
    const { stdin, screen } = this.#keyboard;
    const type = (data: Buffer) => typeInto(socket, data);
    const resize = () => socket.send(JSON.stringify({ type: 'resize', ...terminalSize(screen) }));
    const end = () => {
      if (!this.#has_typed_end) typeInto(socket, Buffer.alloc(0), { end: true });
      this.#has_typed_end = true;
    };
    stdin?.on('data', type).on('end', end).resume();
    screen.on('resize', resize);
    resize();
    return () => {
      stdin?.off('data', type).off('end', end).pause();
      screen.off('resize', resize);
    };
  }

  #show(socket: WebSocket): Promise<ProcessView | null> {
    return new Promise((resolve, reject) => {
      let shown: Promise<void> = Promise.resolve();
      let unshown_bytes = 0;
      let ended: ProcessView | null = null;
      socket.on('message', (data: RawData) => {
        const text = String(data);
        const frame = frameIn(text);
        if (frame === null) return reject(new Failure(EXIT.failed, 'the daemon sent an invalid frame'));
        if (isWithoutEnd(frame)) typeInto(socket, END_OF_FILE_KEY);
        if (frame.type === 'exit') ended = frame.process;
        if (frame.type !== 'output') return;
        unshown_bytes += text.length;
        if (unshown_bytes > UNSHOWN_MAX_BYTES) socket.pause();
        shown = shown
          .then(() => this.#sink.take(frame))
          .then(() => {
            this.#offset = this.#sink.position.stdout;
            unshown_bytes -= text.length;
            if (unshown_bytes <= UNSHOWN_MAX_BYTES) socket.resume();
          });
        shown.catch(reject);
      });
      socket.once('close', () => void shown.then(() => resolve(ended), reject));
      socket.resume();
    });
  }
}

function typeInto(socket: WebSocket, data: Buffer, more: { end?: true } = {}): void {
  socket.send(JSON.stringify({ type: 'stdin', data: data.toString('base64'), encoding: 'base64', ...more }));
}

/** Whether this says that the end of input could not be told: in raw mode, or by a daemon that knows of no `end`. */
function isWithoutEnd({ type, error }: Frame): boolean {
  return type === 'error' && error?.details?.field === 'end';
}

type Frame = OutputPiece & { type: string; process: ProcessView; error?: { details?: { field?: unknown } } };

function frameIn(text: string): Frame | null {
  try {
    const frame: unknown = JSON.parse(text);
    return typeof frame === 'object' ? (frame as Frame | null) : null;
  } catch {
    return null;
  }
}
