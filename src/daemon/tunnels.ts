import { request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, runTime } from '../base/clock.ts';
import { EGRESS_PROTOCOL, EGRESS_TUNNELS_MAX } from '../contract/control-socket.ts';
import { CONNECT_TIMEOUT_MS } from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import { ConnectError } from '../webhook/attempt-error.ts';
import { connectErrorOf } from '../webhook/connect-method.ts';

const SWITCHING = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${EGRESS_PROTOCOL}\r\n\r\n`;
/** What the manager's answer may take beyond the time that it has to connect: it says why it could not. */
const ANSWER_GRACE_MS = 1_000;
const NO_TUNNEL = `the manager, through which webhooks leave, was not there within ${CONNECT_TIMEOUT_MS / 1_000} s`;
const NO_ANSWER = 'the manager, through which webhooks leave, did not answer';

/**
 * Connections through the manager. It opens tunnels, which wait here; one tunnel carries one connection, and the manager
 * replaces a used one. Source: contract section 4, "GET /sandbox/egress".
 */
export class Tunnels {
  readonly #clock: Clock;
  /** Idle tunnels; the oldest is used first. */
  readonly #idle = new Set<Socket>();
  /** Connections that wait for a tunnel. */
  readonly #waiting = new Set<(tunnel: Socket | null) => void>();
  #is_closed = false;

  constructor(clock: Clock) {
    this.#clock = runTime(clock);
  }

  /** Throws `too_many_requests` if no further tunnel may wait. */
  checkRoom(): void {
    if (this.#idle.size >= EGRESS_TUNNELS_MAX) throw new ApiError('too_many_requests');
  }

  /** Takes over a connection whose request for the upgrade has been accepted. */
  add(tunnel: Socket): void {
    tunnel.on('error', () => {}); // 'close' follows
    if (this.#is_closed) return void tunnel.destroy();
    tunnel.write(SWITCHING);
    const [next] = this.#waiting;
    if (next) next(tunnel);
    else this.#park(tunnel);
  }

  #park(tunnel: Socket): void {
    this.#idle.add(tunnel);
    tunnel.once('close', () => this.#idle.delete(tunnel));
    // An idle tunnel is read only to see its end; nothing is expected to come.
    tunnel.once('data', discard).once('end', discard);
  }

  /** Connects to `host:port` through the manager. Rejects with a `ConnectError` after about 6 s at the latest. */
  readonly open = async (authority: string): Promise<Socket> => {
    const until_ms = this.#clock.monotonicMs() + CONNECT_TIMEOUT_MS + ANSWER_GRACE_MS;
    const tunnel = await this.#take();
    if (tunnel === null) throw new ConnectError('connect', NO_TUNNEL);
    return this.#connect(tunnel, authority, until_ms);
  };

  #take(): Promise<Socket | null> {
    const [tunnel] = this.#idle;
    if (tunnel) {
      this.#idle.delete(tunnel);
      tunnel.off('data', discard).off('end', discard);
      return Promise.resolve(tunnel);
    }
    if (this.#is_closed) return Promise.resolve(null);
    return new Promise((resolve) => {
      const settle = (given: Socket | null) => {
        this.#waiting.delete(settle);
        timer.cancel();
        resolve(given);
      };
      const timer = this.#clock.after(CONNECT_TIMEOUT_MS, () => settle(null));
      this.#waiting.add(settle);
    });
  }

  #connect(tunnel: Socket, authority: string, until_ms: number): Promise<Socket> {
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const headers = { host: authority };
    const request = httpRequest({
      method: 'CONNECT',
      path: authority,
      headers,
      createConnection: () => tunnel,
    });
    const timer = this.#clock.after(until_ms - this.#clock.monotonicMs(), () => request.destroy());
    request.once('connect', ({ statusCode, headers }, stream, head) => {
      timer.cancel();
      if (statusCode === 200) {
        if (head.length > 0) stream.unshift(head);
        return resolve(stream as Socket);
      }
      stream.destroy();
      reject(connectErrorOf(headers['proxy-status']));
    });
    request.on('error', () => {
      timer.cancel();
      reject(new ConnectError('connect', NO_ANSWER));
    });
    request.end();
    return promise;
  }

  /** Closes idle tunnels; no connection can be made any more. Idempotent. */
  async stop(): Promise<void> {
    this.#is_closed = true;
    for (const settle of this.#waiting) settle(null);
    for (const tunnel of this.#idle) tunnel.destroy();
  }
}

function discard(this: Socket): void {
  this.destroy();
}
