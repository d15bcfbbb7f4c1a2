import { Socket } from 'node:net';
import { systemClock } from '../../../base/clock.ts';
import type { ConnectionHandle } from '../../../base/engine/node-http.ts';
import { limitIdle } from '../../../base/http/idle-limit.ts';

/** The header by which the daemon offers a client's connection for the body, as a number of its own. */
export const DIRECT_HEADER = 'x-sandboxd-direct';
/** The header of an answer whose body of this length goes to the client's connection. */
export const DIRECT_LENGTH_HEADER = 'x-sandboxd-direct-length';

/** The header of an upload whose last bytes, so many, follow on the client's connection. */
export const DIRECT_REST_HEADER = 'x-sandboxd-direct-rest';

/** What comes with a client's connection. */
export interface DirectOrder {
  direct: string;
  /** Whether a body is read from it, instead of written to it. */
  is_read: boolean;
  idle_timeout_ms: number;
}

/** In an account's process: clients' connections that the daemon passes for the bodies of uploads and downloads. */
export class DirectBodies {
  readonly #waiting = new Map<string, (socket: Socket) => void>();

  /** Takes a connection, for the answer that waits for it. */
  take({ direct, is_read, idle_timeout_ms }: DirectOrder, handle: ConnectionHandle): void {
    const socket = new Socket({ handle, readable: is_read, writable: !is_read } as object);
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

/**
 * The body of an upload: what the daemon had read, then `rest` bytes of the client's connection, which `connect` asks for.
 * `onStep` is called with each piece of it.
 */
export async function* directBody(
  first: AsyncIterable<Buffer>,
  rest: number,
  connect: () => Promise<Socket | null>,
  onStep: () => void,
): AsyncGenerator<Buffer, void> {
  yield* first;
  const socket = await connect();
  let left = rest;
  // Its end closes this process's side of the connection alone.
  for await (const piece of (socket ?? []) as AsyncIterable<Buffer>) {
    onStep();
    left -= piece.length;
    yield left < 0 ? piece.subarray(0, left) : piece;
    if (left <= 0) return;
  }
  throw new Error('the body was cut off');
}
