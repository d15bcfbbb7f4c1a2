import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HOP_BY_HOP } from '../base/hop-by-hop.ts';
import { allowLongBody, isUpgrade, takeUpgrade } from '../base/http-listener.ts';
import { CONTROL_SCOPE_HEADER, type ControlScope } from '../contract/control-scopes.ts';
import { CatalogueError } from '../contract/errors.ts';

/** Also those that the manager answers for itself. */
const NOT_FORWARDED = new Set([
  ...HOP_BY_HOP,
  ...['authorization', 'cookie', 'host', 'origin', 'expect', CONTROL_SCOPE_HEADER],
]);

/**
 * Passes a request through to a sandbox's daemon over its control socket, and its answer back: bodies stream both
 * ways, and whoever goes away ends the other side. Throws `unavailable` where the daemon does not answer.
 */
export async function passThrough(
  request: FastifyRequest,
  reply: FastifyReply,
  target: { socket: string; path: string; scope: ControlScope },
): Promise<void> {
  const is_upgrade = isUpgrade(request);
  const outgoing = httpRequest({
    socketPath: target.socket,
    method: request.method,
    path: target.path,
    headers: { ...forwarded(request.headers, is_upgrade), [CONTROL_SCOPE_HEADER]: target.scope },
  });
  if (!is_upgrade) allowLongBody(request, reply);
  // Whoever asked went away: nobody waits for the rest.
  const abandon = () => outgoing.destroy();
  request.raw.socket.once('close', abandon);
  try {
    const answer = await answerTo(request, outgoing);
    if (answer.upgraded) return join(request, reply, answer.head, answer.upgraded, answer.first);
    relay(reply, answer.head);
  } finally {
    reply.raw.once('close', () => request.raw.socket.off('close', abandon));
  }
}

interface Answer {
  head: IncomingMessage;
  upgraded: Socket | null;
  first: Buffer;
}

function answerTo(request: FastifyRequest, outgoing: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    outgoing.once('response', (head) => resolve({ head, upgraded: null, first: Buffer.alloc(0) }));
    outgoing.once('upgrade', (head, upgraded, first) =>
      resolve({ head, upgraded: upgraded as Socket, first }),
    );
    outgoing.on('error', () => {
      reject(
        new CatalogueError('unavailable', "The sandbox's daemon does not answer.", { retry_after_s: 1 }),
      );
    });
    if (isUpgrade(request)) outgoing.end();
    else request.raw.pipe(outgoing);
  });
}

/** Gives the daemon's answer to the caller as it comes. */
function relay(reply: FastifyReply, head: IncomingMessage): void {
  const own = reply.getHeaders();
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(head.statusCode ?? 502, { ...answered(head.headers), ...(own as Record<string, string>) });
  raw.flushHeaders();
  head.pipe(raw);
  head.once('error', () => raw.destroy());
  raw.once('close', () => head.destroy());
}

/** Makes one connection of two. */
function join(
  request: FastifyRequest,
  reply: FastifyReply,
  head: IncomingMessage,
  upgraded: Socket,
  first: Buffer,
): void {
  const own = takeUpgrade(request, reply);
  if (!own) {
    upgraded.destroy();
    return;
  }
  const lines = pairs(head.rawHeaders).map(([name, value]) => `${name}: ${value}`);
  own.socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
  if (first.length > 0) own.socket.write(first);
  if (own.head.length > 0) upgraded.write(own.head);
  for (const [from, to] of [
    [own.socket, upgraded],
    [upgraded, own.socket],
  ] as const) {
    from.pipe(to);
    from.on('error', () => to.destroy());
    from.once('close', () => to.destroy());
  }
}

function forwarded(headers: IncomingHttpHeaders, is_upgrade: boolean): Record<string, string | string[]> {
  const kept = kept_of(headers, NOT_FORWARDED);
  return {
    ...kept,
    host: 'localhost',
    ...(is_upgrade ? { connection: 'Upgrade', upgrade: 'websocket' } : {}),
  };
}

/** Every answer has this manager's own request id. */
function answered(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  return kept_of(headers, HOP_BY_HOP);
}

function kept_of(
  headers: IncomingHttpHeaders,
  left_out: ReadonlySet<string>,
): Record<string, string | string[]> {
  const entries = Object.entries(headers).filter(
    (entry): entry is [string, string | string[]] => entry[1] !== undefined && !left_out.has(entry[0]),
  );
  return Object.fromEntries(entries);
}

function pairs(raw: string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] as string, raw[2 * i + 1] as string]);
}
