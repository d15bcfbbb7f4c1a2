import type { Server } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { giveTo, listeningDescriptor } from '../engine/node-http.ts';
import { loadLibc } from '../linux/native.ts';

/** Connections of a server from which it has more than one descriptor: few programs ever have as many. */
const CROWD = 16;
/** Descriptors of the listening socket beyond the server's own. */
const MORE = 15;

/**
 * Has a server with many connections accept more than one in each turn of the event loop: a turn accepts one for each
 * descriptor that is listened on, and while requests make turns longer, those who only want to connect would wait for as many
 * turns as there are others. Without the addon that copies descriptors it stays at one.
 */
export function acceptMany(server: Server): void {
  let open = 0;
  let is_wide = false;
  server.on('connection', (socket: Socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
    if (is_wide || open < CROWD) return;
    is_wide = true;
    void widen(server).catch(() => {});
  });
}

async function widen(server: Server): Promise<void> {
  const library = await loadLibc();
  const fd = listeningDescriptor(server);
  if (library === null || fd === null) return;
  const others = Array.from({ length: MORE }, () => {
    const other = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => giveTo(server, socket));
    return other.on('error', () => other.close()).listen({ fd: library.duplicate(fd) });
  });
  const close = server.close.bind(server);
  server.close = (done) => {
    for (const other of others.splice(0)) other.close();
    return close(done);
  };
}
