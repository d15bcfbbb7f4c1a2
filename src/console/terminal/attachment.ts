import { openSocket } from '../api/socket.ts';
import { after } from '../base/clock.ts';
import { bytesOf } from '../processes/output-log.ts';

/** What a terminal is told. */
export interface AttachmentEvents {
  onOutput(bytes: Uint8Array): void;
  onState(state: AttachmentState): void;
  /** The process has ended with this code, or a signal. */
  onExit(outcome: string): void;
}

/** Whether what is typed reaches the process. */
export type AttachmentState = 'connecting' | 'live' | 'waiting' | 'ended';

interface Frame {
  type?: string;
  stream?: string;
  offset?: number;
  data?: string;
  encoding?: string;
  process?: { exit_code: number | null; signal: string | null };
  error?: { message: string };
}

const FIRST_MS = 400;
const MOST_MS = 8_000;
const ENDED = 1_000;
const MANY_REFUSALS = 6;

/**
 * A terminal's connection to its process. Where it breaks it is made again at the byte where it ended, so that nothing that
 * was written is lost or shown twice; keys that are typed meanwhile are sent once it is there.
 */
export class Attachment {
  readonly #path: string;
  readonly #events: AttachmentEvents;
  #socket: WebSocket | null = null;
  #offset: number | null = null;
  #waiting: string[] = [];
  #size: { cols: number; rows: number } | null = null;
  #wait_ms = FIRST_MS;
  #refusals = 0;
  #is_over = false;
  #cancel = () => {};

  constructor(path: string, events: AttachmentEvents) {
    this.#path = path;
    this.#events = events;
    this.#connect();
  }

  /** Sends what is typed. */
  write(text: string): void {
    this.#send({ type: 'stdin', data: text }) || this.#waiting.push(text);
  }

  /** Tells the process how large the terminal is. */
  resize(cols: number, rows: number): void {
    this.#size = { cols, rows };
    this.#send({ type: 'resize', cols, rows });
  }

  /** Leaves the process alone; it goes on. */
  close(): void {
    this.#is_over = true;
    this.#cancel();
    this.#socket?.close();
  }

  #send(frame: object): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  #connect(): void {
    this.#events.onState('connecting');
    const socket = openSocket(this.#path, { offset: this.#offset ?? undefined });
    this.#socket = socket;
    let was_open = false;
    socket.addEventListener('open', () => {
      was_open = true;
      this.#refusals = 0;
      this.#wait_ms = FIRST_MS;
      this.#events.onState('live');
      if (this.#size) this.#send({ type: 'resize', ...this.#size });
      for (const data of this.#waiting.splice(0)) this.#send({ type: 'stdin', data });
    });
    socket.addEventListener('message', ({ data }) => this.#take(String(data)));
    socket.addEventListener('close', ({ code }) => {
      if (!was_open) this.#refusals += 1;
      // A browser does not say why a handshake was refused.
      if (this.#is_over || code === ENDED || this.#refusals >= MANY_REFUSALS) {
        if (!this.#is_over) this.#events.onState('ended');
        return;
      }
      this.#events.onState('waiting');
      this.#cancel = after(this.#wait_ms, () => this.#connect());
      this.#wait_ms = Math.min(this.#wait_ms * 2, MOST_MS);
    });
  }

  #take(text: string): void {
    const frame = frameOf(text);
    if (frame.type === 'output' && typeof frame.data === 'string') {
      const bytes = bytesOf(frame.data, frame.encoding);
      if (typeof frame.offset === 'number') this.#offset = frame.offset + bytes.length;
      this.#events.onOutput(bytes);
    } else if (frame.type === 'exit') {
      this.#is_over = true;
      const { exit_code, signal } = frame.process ?? { exit_code: null, signal: null };
      this.#events.onExit(signal ?? `exit ${exit_code ?? 'unknown'}`);
      this.#events.onState('ended');
    }
  }
}

function frameOf(text: string): Frame {
  try {
    return JSON.parse(text) as Frame;
  } catch {
    return {};
  }
}
