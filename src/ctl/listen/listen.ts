import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS } from '../../contract/defaults.ts';
import { SIGNATURE_HEADER, verify } from '../../webhook/signature.ts';
import type { Terminal } from '../context.ts';
import { EXIT, type ExitCode, Failure, reason } from '../failure.ts';
import { eventLine } from '../terminal/event-line.ts';
import { printable } from '../terminal/printable.ts';
import { forward, passBack } from './forward.ts';
import { jsonOnOneLine, parseEvent, type ReceivedEvent } from './received-event.ts';

/** The address to listen on by default: this machine only. */
export const LISTEN_HOST = '127.0.0.1';
/** The default port. */
export const LISTEN_PORT = 8787;

/** Twice the largest publish, so that no event is refused for its size. */
const EVENT_MAX_BYTES = 2 * 1024 * 1024;
const RECENT_EVENTS = 100_000;

/** Where and how to receive. Port 0 picks a free one. */
export interface ListenOptions {
  host: string;
  port: number;
  /** Without it signatures are not checked. */
  secret?: string | undefined;
  forward_to?: URL | undefined;
}

/**
 * Receives events until `interrupted` and prints each on one line. Answers 204 once an event is printed, 401 if its
 * signature is missing or wrong, 400 if its body is unreadable; with `forward_to`, what that URL answers.
 * Contract section 4, "`sandboxctl`".
 */
export async function listen(
  terminal: Terminal,
  options: ListenOptions,
  interrupted: AbortSignal,
): Promise<ExitCode> {
  const receiver = new Receiver(terminal, options);
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS });
  return new Promise((resolve, reject) => {
    const end = (onClosed: () => void) => {
      server.close(onClosed);
      server.closeAllConnections();
    };
    const fail = (error: unknown) => end(() => reject(error));
    server.on('request', (request, response) => void receiver.receive(request, response).catch(fail));
    server.on('error', (error) => {
      const where = `${options.host}:${options.port}`;
      reject(new Failure(EXIT.failed, `cannot listen on ${where}: ${reason(error)}`));
    });
    server.listen(options.port, options.host, () => {
      const { address, family, port } = server.address() as AddressInfo;
      const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
      // With --json, stdout carries only events.
      (terminal.json ? terminal.err : terminal.out).line(`listening on ${url}`).catch(fail);
    });
    interrupted.addEventListener('abort', () => end(() => resolve(EXIT.ok)));
  });
}

class Receiver {
  readonly #terminal: Terminal;
  readonly #options: ListenOptions;
  readonly #recent = new RecentIds(RECENT_EVENTS);

  constructor(terminal: Terminal, options: ListenOptions) {
    this.#terminal = terminal;
    this.#options = options;
  }

  /** Rejects only if printing fails; the sender then gets no answer. */
  async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      response.writeHead(405, { allow: 'POST' }).end();
      return;
    }
    const body = await readBody(request);
    if (body === null) {
      // The rest is read and dropped: otherwise the sender would see a reset connection instead of the answer.
      request.resume();
      return this.#refuse(response, 400, 'the body cannot be read');
    }
    const { secret, forward_to } = this.#options;
    const signature = request.headers[SIGNATURE_HEADER.toLowerCase()];
    if (secret !== undefined && !verify(secret, body, signature)) {
      return this.#refuse(response, 401, signature ? 'the signature is wrong' : 'the signature is missing');
    }
    const text = decode(body);
    const event = text === null ? null : parseEvent(text);
    if (text === null || event === null) return this.#refuse(response, 400, 'the body is not an event');

    const notes = this.#notes(event, request);
    if (!forward_to) {
      await this.#print(text, event, notes);
      response.writeHead(204).end();
      return;
    }
    const sender_gone = new AbortController();
    response.once('close', () => sender_gone.abort());
    const answer = await forward(forward_to, request, body, sender_gone.signal).catch((error: unknown) =>
      sender_gone.signal.aborted ? 'the sender has gone' : reason(error),
    );
    const outcome = typeof answer === 'string' ? answer : `answered ${answer.statusCode}`;
    await this.#print(text, event, [...notes, `${forward_to.host}: ${outcome}`]);
    if (typeof answer === 'string') response.writeHead(502).end();
    else passBack(answer, response);
  }

  #notes(event: ReceivedEvent, request: IncomingMessage): string[] {
    const attempt = Number(request.headers['x-service-attempt']);
    return [
      ...(attempt > 1 ? [`attempt ${attempt}`] : []),
      ...(this.#recent.add(event.event_id) ? [] : ['duplicate']),
    ];
  }

  async #print(text: string, event: ReceivedEvent, notes: string[]): Promise<void> {
    const { out, err, json } = this.#terminal;
    if (!json) return out.line(eventLine(event, out, notes));
    await out.json(jsonOnOneLine(text));
    if (notes.length > 0) await err.line(`${printable(event.event_id)}: ${notes.join(', ')}`);
  }

  async #refuse(response: ServerResponse, status: 400 | 401, why: string): Promise<void> {
    response.writeHead(status).end();
    await this.#terminal.err.line(`refused with ${status}: ${why}`);
  }
}

/** The whole body, or null if it is too long or cut off. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size_bytes = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size_bytes += chunk.length;
      if (size_bytes > EVENT_MAX_BYTES) return null;
      chunks.push(chunk);
    }
  } catch {
    return null;
  }
  return Buffer.concat(chunks);
}

function decode(body: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return null;
  }
}

/** Remembers the last `limit` ids in order to recognise duplicates. */
export class RecentIds {
  readonly #ids = new Set<string>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds an id; false if it was already there. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    if (this.#ids.size > this.#limit) this.#ids.delete(this.#ids.values().next().value as string);
    return true;
  }
}
