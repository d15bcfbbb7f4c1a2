import { Socket } from 'node:net';
import { systemClock } from '../../../base/clock.ts';
import type { ConnectionHandle } from '../../../base/engine/node-http.ts';
import { limitIdle } from '../../../base/http/idle-limit.ts';

/** The header by which the daemon offers a client's connection for the body, as a number of its own. */
export const DIRECT_HEADER = 'x-sandboxd-direct';
/** The header of an answer whose body of this length goes to the client's connection. */
export const DIRECT_LENGTH_HEADER = 'x-sandboxd-direct-length';

/** What comes with a client's connection. */
export interface DirectOrder {
  direct: string;
  idle_timeout_ms: number;
}

/** In an account's process: clients' connections that the daemon passes for the bodies of answers. */
export class DirectBodies {
  readonly #waiting = new Map<string, (socket: Socket) => void>();

  /** Takes a connection, for the answer that waits for it. */
  take({ direct, idle_timeout_ms }: DirectOrder, handle: ConnectionHandle): void {
    const socket = new Socket({ handle, readable: false, writable: true } as object);
    socket.on('error', () => {}); // 'close' follows
    limitIdle(socket, socket, idle_timeout_ms, systemClock);
    const taken = this.#waiting.get(direct);
    this.#waiting.delete(direct);
    if (taken) taken(socket);
    else socket.destroy();
  }

  /** Resolves with the connection of a number; null once the client has gone. */
  async connection(direct: string, gone: AbortSignal): Promise<Socket | null> {
    const { promise, resolve } = Promise.withResolvers<Socket | null>();
    const leave = () => {
      this.#waiting.delete(direct);
      resolve(null);
    };
    this.#waiting.set(direct, resolve);
    gone.addEventListener('abort', leave);
    if (gone.aborted) leave();
    const socket = await promise;
    gone.removeEventListener('abort', leave);
    return socket;
  }
}
