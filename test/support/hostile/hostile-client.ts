import http from 'node:http';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import type { Random } from '../random.ts';
import type { Notes } from './notes.ts';

export const PUBLISH = '/api/v1/webhook/publish';
export const JSON_TYPE = { 'content-type': 'application/json' };

/** A request that the daemon has taken whole is answered at the latest so long after the attack. */
const PATIENCE_MS = 60_000;

/** Where to attack. */
export interface Site {
  port: number;
  token: string;
  /** An existing folder that file operations use. */
  folder: string;
}

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
}

interface Question {
  body?: string | Buffer | AsyncIterable<Buffer>;
  headers?: Record<string, string>;
  /** Sends no token. */
  is_open?: boolean;
  /** Goes away after so long, answered or not. */
  leaves_after_ms?: number;
  /** Reads no more than this of the body, and then goes away. */
  reads_bytes?: number;
}

interface Crowd {
  site: Site;
  notes: Notes;
  /** Aborted when the attack is over. */
  over: AbortSignal;
  /** A checksum of each acknowledged payload, by event id. */
  acknowledged: Map<string, number>;
}

/** One of many hostile clients: what it does is drawn from its seed, and what it is answered is noted. */
export class HostileClient {
  readonly site: Site;
  readonly random: Random;
  readonly over: AbortSignal;
  /** Number of the client. */
  readonly number: number;
  readonly notes: Notes;
  behaviour = '';
  readonly #acknowledged: Map<string, number>;
  #markers = 0;

  constructor({ site, notes, over, acknowledged }: Crowd, number: number, random: Random) {
    this.site = site;
    this.notes = notes;
    this.over = over;
    this.random = random;
    this.number = number;
    this.#acknowledged = acknowledged;
  }

  get is_over(): boolean {
    return this.over.aborted;
  }

  /** From `least` to `most`, small ones as often as large ones. */
  size(least: number, most: number): number {
    return Math.round(least * (most / least) ** this.random.next());
  }

  /** A path of its own in the folder. */
  path(name: string): string {
    return `${this.site.folder}/${this.number}-${name}`;
  }

  /** Waits, but not beyond the end. */
  async pause(delay_ms: number): Promise<void> {
    await sleep(delay_ms, undefined, { signal: this.over }).catch(() => {});
  }

  /** Text of a payload of about that many bytes, which no other has. */
  payload(size_bytes: number): string {
    const head = `{"by":${this.number},"n":${++this.#markers},"fill":"`;
    return `${head}${'x'.repeat(Math.max(0, size_bytes - head.length - 2))}"}`;
  }

  /** Publishes a payload's text; what is acknowledged has to arrive. */
  async publish(payload: string, headers: Record<string, string> = {}): Promise<Answer | null> {
    const body = `{"payload":${payload}}`;
    const answer = await this.ask('POST', PUBLISH, {
      ...{ body, is_open: true, headers: { ...JSON_TYPE, ...headers } },
    });
    if (answer?.status === 202) this.acknowledge(answer.text, payload);
    return answer;
  }

  acknowledge(answer_text: string, payload: string): string {
    const { data } = JSON.parse(answer_text) as { data: { event_id: string } };
    this.#acknowledged.set(data.event_id, crc32(payload));
    return data.event_id;
  }

  /** POST of JSON with the token. */
  post(path: string, body: unknown, question: Question = {}): Promise<Answer | null> {
    return this.ask('POST', path, { ...question, body: JSON.stringify(body), headers: JSON_TYPE });
  }

  /** `data` of an answer; null where there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the daemon answers.
  data(answer: Answer | null): any {
    if (answer === null || answer.status >= 300) return null;
    try {
      return JSON.parse(answer.text).data;
    } catch {
      return null;
    }
  }

  /** One request on a connection of its own; null where this client went away before the answer. */
  ask(method: string, path: string, question: Question = {}): Promise<Answer | null> {
    const { body, headers = {}, is_open = false, leaves_after_ms, reads_bytes } = question;
    const what = `${method} ${path.slice(0, 100)}`;
    return new Promise((resolve) => {
      let has_left = false;
      const request = http.request({
        ...{ host: '127.0.0.1', port: this.site.port, method, path, agent: false },
        headers: { ...(is_open ? {} : { authorization: `Bearer ${this.site.token}` }), ...headers },
      });
      const leave = () => {
        has_left = true;
        request.destroy();
      };
      const patience = new AbortController();
      const end = (answer: Answer | null) => {
        patience.abort();
        resolve(answer);
      };
      if (leaves_after_ms !== undefined) {
        void sleep(leaves_after_ms, undefined, { signal: AbortSignal.any([patience.signal, this.over]) })
          .catch(() => {})
          .then(leave);
      } else this.#waitFor(what, patience.signal, leave);
      request.on('response', (response) => {
        const chunks: Buffer[] = [];
        let read_bytes = 0;
        const answered = () => {
          const text = Buffer.concat(chunks).toString('latin1');
          const answer = { status: response.statusCode ?? 0, headers: response.headers, text };
          this.notes.answer(this.behaviour, what, answer);
          end(answer);
        };
        response.on('data', (chunk: Buffer) => {
          if (read_bytes < 65_536) chunks.push(chunk);
          else if (reads_bytes === undefined && read_bytes < 4 * 2 ** 20) chunks.push(chunk);
          read_bytes += chunk.length;
          if (reads_bytes === undefined || read_bytes < reads_bytes) return;
          answered();
          leave();
        });
        response.on('end', answered);
        response.on('error', () => {
          this.notes.count(this.behaviour, has_left ? 'left' : 'broken');
          end(null);
        });
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        if (has_left) this.notes.count(this.behaviour, 'left');
        // An answer that came while the body was still being sent ends the connection.
        else this.notes.count(this.behaviour, error.code === 'EPIPE' ? 'refused' : 'cut');
        end(null);
      });
      if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) request.end(body);
      else void stream(request, body);
    });
  }

  /** Calls what has no answer a minute after the attack a hang. */
  #waitFor(what: string, answered: AbortSignal, leave: () => void): void {
    const wait = async () => {
      if (!this.over.aborted)
        await new Promise<void>((resolve) => {
          this.over.addEventListener('abort', () => resolve(), { once: true, signal: answered });
          answered.addEventListener('abort', () => resolve(), { once: true });
        });
      await sleep(PATIENCE_MS, undefined, { signal: answered });
      this.notes.defect(`${this.behaviour}: ${what}: no answer until ${PATIENCE_MS} ms after the attack`);
      leave();
    };
    void wait().catch(() => {});
  }

  /** A connection on which bytes go as they are; it ends with the attack at the latest. */
  async connect(): Promise<net.Socket> {
    const socket = net.connect(this.site.port, '127.0.0.1');
    socket.on('error', () => {});
    const leave = () => socket.destroy();
    this.over.addEventListener('abort', leave, { once: true });
    socket.once('close', () => this.over.removeEventListener('abort', leave));
    if (this.over.aborted) leave();
    await new Promise<void>((resolve) => {
      socket.once('connect', resolve);
      socket.once('close', () => resolve());
    });
    return socket;
  }

  /** Waits until the other side ends a connection, or for so long. */
  async held(socket: net.Socket, hold_ms: number): Promise<void> {
    const gone = new AbortController();
    socket.once('close', () => gone.abort());
    if (socket.destroyed) return;
    await sleep(hold_ms, undefined, { signal: AbortSignal.any([gone.signal, this.over]) }).catch(() => {});
    this.notes.count(this.behaviour, gone.signal.aborted ? 'closed' : 'left');
    socket.destroy();
  }

  /** The first line and headers of a request, as bytes go on the wire. */
  head(method: string, path: string, headers: Record<string, string | number> = {}): string {
    const all = {
      host: `127.0.0.1:${this.site.port}`,
      authorization: `Bearer ${this.site.token}`,
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
  }
}

async function stream(request: http.ClientRequest, body: AsyncIterable<Buffer>): Promise<void> {
  for await (const piece of body) {
    if (request.destroyed) return;
    if (request.write(piece)) continue;
    await new Promise<void>((resolve) => {
      request.once('drain', resolve);
      request.once('close', () => resolve());
    });
  }
  request.end();
}
