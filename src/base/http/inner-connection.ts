import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import { systemClock, type Timer } from '../clock.ts';
import { giveTo } from '../engine/node-http.ts';

/**
 * Connects to a server of this program, with no socket of the system between: what comes over it passes all that the server
 * has for its connections. `address` is that of whom the connection is made for.
 */
export function connectInside(server: Server, address: string): Duplex {
  const [near, far] = duplexPair();
  near.allowHalfOpen = false;
  // As many as a call of the longest way has, and those below: Node takes more than ten for a leak.
  far.setMaxListeners(20);
  let timer: Timer | null = null;
  // What the server and its handlers use of a socket beyond a stream.
  Object.assign(far, {
    remoteAddress: address,
    setKeepAlive: () => far,
    destroySoon: () => {
      far.end();
      if (far.writableFinished) far.destroy();
      else far.once('finish', () => far.destroy());
    },
    // A limit of the time that is left, however much passes meanwhile.
    setTimeout: (within_ms: number, onOver = () => far.destroy()) => {
      timer?.cancel();
      timer = within_ms > 0 ? systemClock.after(within_ms, onOver) : null;
      return far;
    },
  });
  // Who has gone reads nothing more, and 'close' follows every error.
  near.once('close', () => {
    timer?.cancel();
    far.destroy();
  });
  // An end that came before its time is no end of what was said.
  far.once('close', () => {
    if (!far.writableFinished) near.destroy();
  });
  near.on('error', () => {});
  far.on('error', () => {});
  giveTo(server, far as unknown as Socket);
  return near;
}
