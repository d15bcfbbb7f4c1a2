import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import { isUpgrade, takeUpgrade, type Upgrade } from '../../base/http/listener.ts';
import { disconnectSignal } from '../../base/http/sse-response.ts';
import { CONNECT_TIMEOUT_MS } from '../../contract/defaults.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import { PORT_PROTOCOL, portOf } from '../../contract/ports.ts';
import type { Exchange } from './process-output.ts';

/** The slice of the daemon that connections to ports use. */
export interface PortContext {
  readonly clock: Clock;
  /** The daemon's own TCP port. */
  readonly port: number;
}

const SWITCHING = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PORT_PROTOCOL}\r\n\r\n`;
/** What is read from a port at once: in smaller pieces a long download costs much more. */
const PIECE_BYTES = 128 * 1024;

/**
 * Turns the connection of a request into one to a TCP port of the sandbox: of its loopback, or of an address of its own.
 * Throws `invalid_request`, `forbidden` for the daemon's own port, and `bad_gateway` if nobody accepts the connection.
 * Source: contract section 4, "GET /sandbox/ports/{port}".
 */
export async function answerPort(
  daemon: PortContext,
  text: string,
  { request, reply }: Exchange,
): Promise<void> {
  if (!isUpgrade(request, PORT_PROTOCOL)) throw invalidField('Upgrade', `must be ${PORT_PROTOCOL}`);
  const port = portOf(text);
  if (port === null) throw invalidField('port', 'must be a whole number from 1 to 65535');
  if (port === daemon.port) throw new ApiError('forbidden', "This is the daemon's own port.");
  const gone = disconnectSignal(reply);
  const connection = await dial(daemon.clock, port, gone);
  const upgrade = takeUpgrade(request, reply);
  if (upgrade && !gone.aborted) connection.join(upgrade);
  else connection.close();
}

async function dial(clock: Clock, port: number, gone: AbortSignal): Promise<PortConnection> {
  const over = new AbortController();
  const timer = clock.after(CONNECT_TIMEOUT_MS, () => over.abort());
  const signal = AbortSignal.any([gone, over.signal]);
  try {
    for (const host of ownAddresses()) {
      const connection = new PortConnection(host, port);
      if (await connection.opened(signal)) return connection;
      if (signal.aborted) break;
    }
  } finally {
    timer.cancel();
  }
  const why = over.signal.aborted ? 'The server does not accept connections' : 'Nobody listens';
  throw new ApiError('bad_gateway', `${why} on port ${port} of the sandbox.`, { port });
}

/** The addresses of this network namespace, loopback first. */
function ownAddresses(): string[] {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  // A link-local address does not lead anywhere without its interface.
  const others = interfaces.filter(({ internal, address }) => !internal && !address.startsWith('fe80:'));
  return ['127.0.0.1', '::1', ...others.map(({ address }) => address)];
}

/** One connection to a port. */
class PortConnection {
  readonly #server: Socket;
  #tunnel: Socket | null = null;
  #piece: Buffer | null = null;
  /** Whether the tunnel has not taken the last piece yet. */
  #is_waiting = false;

  constructor(host: string, port: number) {
    this.#server = connect({
      ...{ host, port, noDelay: true },
      onread: {
        buffer: () => {
          this.#piece ??= Buffer.allocUnsafeSlow(PIECE_BYTES);
          return this.#piece;
        },
        callback: (bytes) => this.#take(this.#piece as Buffer, bytes),
      },
    });
    this.#server.on('error', () => {}); // 'close' follows
    this.#server.pause();
  }

  /** Whether the server has accepted it; false if it has not, or `signal` aborts. */
  async opened(signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const giveUp = () => this.#server.destroy();
    signal.addEventListener('abort', giveUp);
    this.#server.once('connect', () => resolve(true)).once('close', () => resolve(false));
    if (signal.aborted) giveUp();
    const is_open = await promise;
    signal.removeEventListener('abort', giveUp);
    return is_open && !this.#server.destroyed;
  }

  /**
   * Passes bytes both ways, no faster than either side takes them. What the server has sent before its end still
   * arrives; when the tunnel closes, nothing more is sent.
   */
  join({ socket, head }: Upgrade): void {
    this.#tunnel = socket;
    socket.on('error', () => {});
    socket.once('close', () => this.close());
    socket.write(SWITCHING);
    if (head.length > 0) this.#server.write(head);
    socket.pipe(this.#server);
    this.#server.once('close', () => socket.destroySoon());
    this.#server.resume();
  }

  /** Idempotent. */
  close(): void {
    this.#server.destroy();
  }

  #take(piece: Buffer, bytes: number): boolean {
    const tunnel = this.#tunnel as Socket;
    tunnel.write(piece.subarray(0, bytes), this.#onTaken);
    // The buffer is used again: nothing is read before the system has taken this piece.
    this.#is_waiting = tunnel.writableLength > 0;
    return !this.#is_waiting;
  }

  readonly #onTaken = (): void => {
    if (!this.#is_waiting || this.#tunnel?.writableLength !== 0) return;
    this.#is_waiting = false;
    this.#server.resume();
  };
}
