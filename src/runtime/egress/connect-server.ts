import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { type Clock, runTime } from '../../base/clock.ts';
import { ATTEMPT_TIMEOUT_MS } from '../../contract/defaults.ts';
import { ConnectError } from '../../webhook/attempt-error.ts';
import { proxyStatusOf } from '../../webhook/connect-method.ts';
import type { Dialer } from './dialer.ts';

/** More than a CONNECT request of a daemon needs. */
const HEAD_MAX_BYTES = 4 * 1024;

/** How long a connection with one direction ended stays open: as long as an attempt may take. */
const HALF_OPEN_MS = ATTEMPT_TIMEOUT_MS;

/** One tunnel, for the server that answers what comes out of it. */
export interface ServedTunnel {
  /** The only `host:port` that it may lead to. */
  authority: string;
  /** The stream to use instead of a connection that was made for it. */
  carry: (consumer: Socket) => Promise<Duplex>;
  /** Called when a CONNECT request has come. */
  onRequest: () => void;
  /** Called when the daemon sends nothing more. */
  onEnd: () => void;
}

/** Answers the one CONNECT request of each tunnel. Source: RFC 9110, section 9.3.6. */
export class ConnectServer {
  readonly #clock: Clock;
  readonly #dialer: Pick<Dialer, 'dial'>;
  readonly #tunnels = new WeakMap<Socket, ServedTunnel>();
  readonly #server: Server;

  constructor(clock: Clock, dialer: Pick<Dialer, 'dial'>) {
    this.#clock = clock;
    this.#dialer = dialer;
    this.#server = createServer({ maxHeaderSize: HEAD_MAX_BYTES });
    // It listens nowhere: its connections are the tunnels.
    this.#server.on(
      'connect',
      (request, socket, head) => void this.#connect(request, socket as Socket, head),
    );
    this.#server.on('request', ({ socket }) => socket.destroy());
    this.#server.on('clientError', (_error, socket) => socket.destroy());
  }

  /** Serves a tunnel until it closes. */
  serve(socket: Socket, tunnel: ServedTunnel): void {
    this.#tunnels.set(socket, tunnel);
    this.#server.emit('connection', socket);
  }

  async #connect({ url }: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const tunnel = this.#tunnels.get(socket) as ServedTunnel;
    socket.on('error', () => {}); // 'close' follows
    tunnel.onRequest();
    if (url !== tunnel.authority) {
      return refuse(socket, new ConnectError('blocked', `webhooks leave to ${tunnel.authority} alone`));
    }
    const gone = new AbortController();
    const onGone = () => gone.abort();
    socket.once('close', onGone);
    try {
      const connection = await this.#dialer.dial(tunnel.authority, gone.signal);
      const consumer = await tunnel.carry(connection).catch((error: Error) => {
        connection.destroy();
        throw error;
      });
      socket.off('close', onGone);
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      if (head.length > 0) socket.unshift(head);
      socket.once('end', tunnel.onEnd);
      join(this.#clock, socket, consumer);
    } catch (error) {
      refuse(
        socket,
        error instanceof ConnectError ? error : new ConnectError('connect', (error as Error).message),
      );
    }
  }
}

function refuse(socket: Socket, error: ConnectError): void {
  const status = error.attempt_error === 'blocked' ? '403 Forbidden' : '502 Bad Gateway';
  socket.end(`HTTP/1.1 ${status}\r\nProxy-Status: ${proxyStatusOf(error)}\r\nContent-Length: 0\r\n\r\n`);
  socket.destroySoon();
}

/**
 * Passes bytes between two streams, no faster than either takes them. The end of a direction is passed on; an error, or a
 * close, closes both.
 */
export function join(clock: Clock, one: Duplex, other: Duplex): void {
  const close = () => {
    one.destroy();
    other.destroy();
  };
  if (one.destroyed || other.destroyed) {
    close();
    return;
  }
  const [there, back] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  pipeline(one, other, () => there.resolve());
  pipeline(other, one, () => back.resolve());
  void Promise.race([there.promise, back.promise]).then(() => {
    const timer = runTime(clock).after(HALF_OPEN_MS, close);
    void Promise.all([there.promise, back.promise]).then(() => {
      timer.cancel();
      close();
    });
  });
}
