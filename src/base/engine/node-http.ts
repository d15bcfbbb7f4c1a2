import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Private parts of Node's servers: properties that Node neither documents nor promises. Each function says what is private,
 * what it gives, and what happens once a Node no longer has it. `test/base/engine/node-http.test.ts` then fails by its name.
 */

/** The backlog that Node itself passes on if none is given. */
const BACKLOG = 511;
/** Addresses that are no names to look up, and their families. */
const PLAIN_ADDRESSES = new Map([
  ['127.0.0.1', 4],
  ['0.0.0.0', 4],
  ['::1', 6],
]);

type BareListening = Server & {
  _listen2?: (address: string, port: number, family: number, backlog: number) => void;
};

/**
 * Listens on an address, by `_listen2` if it is plain: Node's own last step of `listen`. Before it, Node looks the address
 * up, compiles an expression of all forms of IPv6 addresses to tell link-local ones apart, and loads its cluster, which
 * together are a tenth of the daemon's start. Without `_listen2` the start takes that time.
 */
export function listenOn(server: Server, address: string, port: number): void {
  const family = PLAIN_ADDRESSES.get(address);
  const bare: BareListening = server;
  if (family && bare._listen2) bare._listen2(address, port, family, BACKLOG);
  else server.listen({ host: address, port, ipv6Only: true });
}

/**
 * The descriptor that a server listens on, which Node keeps in its `_handle`; null for one that does not listen, or without
 * `_handle`: then it accepts one connection in each turn of the event loop.
 */
export function listeningDescriptor(server: Server): number | null {
  const fd = (server as Server & { _handle?: { fd?: number } | null })._handle?.fd;
  return fd === undefined || fd < 0 ? null : fd;
}

/**
 * Has a server serve a connection that another one has accepted for it. Node tells what goes wrong with it to the socket's
 * `server`. Without that property such requests are answered by a closed connection.
 */
export function giveTo(server: Server, socket: Socket): void {
  (socket as Socket & { server?: unknown }).server = server;
  server.emit('connection', socket);
}

/**
 * The server that accepted a connection, which Node notes in the socket's `server`. It saves a set of all connections of
 * each server. Without it no connection counts as one of the control socket, and what only that may do is refused.
 */
export function serverOf(socket: Socket): unknown {
  return (socket as Socket & { server?: unknown }).server;
}

/**
 * The response that a connection is sending, which Node notes in the socket's `_httpMessage`. Requests that cannot be
 * parsed reach the program without it. Without `_httpMessage` the answer to such a request might be written into the middle
 * of the previous one's.
 */
export function responseInProgress(socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}

/**
 * Calls `end` where Node would close a connection after its last response: Node does so by the socket's `destroySoon`, which
 * is replaced. That Node calls this method, and from a listener of the response's `finish`, is private. Without it the
 * connection is closed at once, as if nothing had been replaced: a client that still sends its body loses the answer.
 */
export function replaceClosing(socket: Socket, end: () => void): void {
  socket.destroySoon = end;
}

type Parsed = Socket & { parser?: { onIncoming?: OnIncoming | null } | null };
type OnIncoming = (request: IncomingMessage, keep_alive: boolean) => number;

/**
 * Asks `isRefused` at the head of each request of a connection. A refused one is the last that is parsed: it reaches the
 * server as an upgrade, with nothing kept of what follows it. Node calls `onIncoming` of the socket's `parser` with each
 * head, and takes an answer of 2 as an upgrade. Without it no request is refused: Node has all those of one read answered
 * at once, and keeps their answers until the earlier ones have been written.
 */
export function refuseRequests(socket: Socket, isRefused: () => boolean): void {
  const { parser } = socket as Parsed;
  const onIncoming = parser?.onIncoming;
  if (!onIncoming) return;
  parser.onIncoming = (request, keep_alive) => {
    if (!isRefused()) return onIncoming(request, keep_alive);
    (request as IncomingMessage & { upgrade: boolean }).upgrade = true;
    return 2;
  };
}

/** The kernel's side of a connection, as it can be sent to another process. */
export type ConnectionHandle = object;

/**
 * The kernel's side of a connection, which Node keeps in the socket's `_handle`: sent to another process, that has the
 * connection as well, and this one goes on with it. Null for one that is closed, or without `_handle`: then bodies go by way
 * of this process, which costs more.
 */
export function handleOf(socket: Socket): ConnectionHandle | null {
  return (socket as Socket & { _handle?: ConnectionHandle | null })._handle ?? null;
}

interface ReadHandle {
  readStart?: () => number;
  readStop?: () => number;
}

/**
 * Keeps Node from reading a connection: whoever else has it reads what follows. Returns what ends that, or null if this Node
 * has no `readStart` and `readStop` in the handle: then it is read here.
 */
export function holdReading(socket: Socket): (() => void) | null {
  const handle = handleOf(socket) as ReadHandle | null;
  if (!handle?.readStart || !handle.readStop) return null;
  handle.readStop();
  // Node begins again with each request, and when its buffers are empty.
  handle.readStart = () => 0;
  return () => {
    delete handle.readStart;
    if (!socket.destroyed) (handle as ReadHandle).readStart?.();
  };
}
