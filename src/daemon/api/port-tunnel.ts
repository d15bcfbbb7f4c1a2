import type { Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type Clock, runTime } from '../../base/clock.ts';
import type { HttpExchange } from '../../base/http/app.ts';
import { isUpgrade, takeUpgrade } from '../../base/http/listener.ts';
import { connectRelayed, joinUpgrade } from '../../base/http/relay.ts';
import { disconnectSignal } from '../../base/http/sse-response.ts';
import { PORT_PROTOCOL, portOf } from '../../contract/control-socket.ts';
import { CONNECT_TIMEOUT_MS } from '../../contract/defaults.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';

/** The slice of the daemon that connections to ports use. */
export interface PortContext {
  readonly clock: Clock;
  /** The daemon's own TCP port. */
  readonly port: number;
}

const SWITCHING = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PORT_PROTOCOL}\r\n\r\n`;

/**
 * Turns the connection of a request into one to a TCP port of the sandbox: of its loopback, or of an address of its own.
 * Throws `invalid_request`, `forbidden` for the daemon's own port, and `bad_gateway` if nobody accepts the connection.
 * Source: contract section 4, "GET /sandbox/ports/{port}".
 */
export async function answerPort(
  daemon: PortContext,
  text: string,
  { request, reply }: HttpExchange,
): Promise<void> {
  if (!isUpgrade(request, PORT_PROTOCOL)) throw invalidField('Upgrade', `must be ${PORT_PROTOCOL}`);
  const port = portOf(text);
  if (port === null) throw invalidField('port', 'must be a whole number from 1 to 65535');
  if (port === daemon.port) throw new ApiError('forbidden', "This is the daemon's own port.");
  const gone = disconnectSignal(reply);
  const server = await dial(daemon.clock, port, gone);
  const upgrade = takeUpgrade(request, reply);
  if (!upgrade || gone.aborted) return void server.destroy();
  upgrade.socket.write(SWITCHING);
  joinUpgrade(upgrade, server);
}

async function dial(clock: Clock, port: number, gone: AbortSignal): Promise<Socket> {
  const over = new AbortController();
  const timer = runTime(clock).after(CONNECT_TIMEOUT_MS, () => over.abort());
  const signal = AbortSignal.any([gone, over.signal]);
  try {
    for (const host of ownAddresses()) {
      const server = connectRelayed({ host, port, noDelay: true });
      server.on('error', () => {}); // 'close' follows
      // Nothing is read before there is somebody to take it.
      server.pause();
      if (await isAccepted(server, signal)) return server;
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

/** Whether a server accepts a connection; false if it does not, or `signal` aborts. */
async function isAccepted(server: Socket, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const giveUp = () => server.destroy();
  signal.addEventListener('abort', giveUp);
  server.once('connect', () => resolve(true)).once('close', () => resolve(false));
  if (signal.aborted) giveUp();
  const is_open = await promise;
  signal.removeEventListener('abort', giveUp);
  return is_open && !server.destroyed;
}
