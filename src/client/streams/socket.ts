import { socketProtocols } from '../../contract/socket-token.ts';
import { unreachable } from '../error.ts';

/** Characters that were received and not yet read at which a connection is given up, to be made again where it ended. */
const UNREAD_MAX_CHARACTERS = 8 * 1024 * 1024;

/** Characters that were received and not yet read at which a sender is held up, where it can be. */
const HELD_MIN_CHARACTERS = 256 * 1024;

/** What of a WebSocket is used. */
export type Socket = Pick<WebSocket, 'send' | 'close' | 'readyState' | 'bufferedAmount'>;

/** A WebSocket, and the texts that it receives until it is closed, from the first. */
export interface OpenSocket {
  socket: Socket;
  texts: AsyncGenerator<string, void>;
}

/** Opens a WebSocket with a bearer token. Rejects with `unreachable`: what the handshake was answered, nobody is told. */
export function openSocket(url: URL, token: string | null, signal?: AbortSignal): Promise<OpenSocket> {
  signal?.throwIfAborted();
  // The types of browsers do not know the other form.
  const socket = token === null ? new WebSocket(url) : new WebSocket(url, proofOf(token) as string[]);
  const texts = textsOf(socket);
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      reject(signal?.reason);
      socket.close();
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    const settle = (settled: () => void) => () => {
      signal?.removeEventListener('abort', onAbort);
      settled();
    };
    const refused = () => reject(unreachable(new Error('the WebSocket was refused')));
    socket.addEventListener(
      'open',
      settle(() => resolve({ socket, texts })),
      { once: true },
    );
    socket.addEventListener('close', settle(refused), { once: true });
    // `close` follows.
    socket.addEventListener('error', () => {}, { once: true });
  });
}

/** How a handshake proves its caller: by a header, or in a browser, which can set none, by subprotocols. */
export function proofOf(
  token: string,
  is_browser = (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node ===
    undefined,
) {
  return is_browser ? socketProtocols(token) : { headers: { authorization: `Bearer ${token}` } };
}

/** What holds a sender up. Browsers have nothing like it. */
export interface Flow {
  pause(): void;
  resume(): void;
}

/**
 * The texts that a socket receives. A reader that is too slow holds the sender up where there is a `flow`; otherwise it has
 * the socket closed under it, after what has been received.
 */
export function textsOf(
  socket: Pick<WebSocket, 'addEventListener' | 'close'>,
  flow: Flow | null = null,
): AsyncGenerator<string, void> {
  const received: string[] = [];
  let unread = 0;
  let is_closed = false;
  let wake = () => {};
  socket.addEventListener('message', ({ data }: { data: unknown }) => {
    const text = typeof data === 'string' ? data : '';
    unread += text.length;
    received.push(text);
    if (unread > HELD_MIN_CHARACTERS) flow?.pause();
    if (unread > UNREAD_MAX_CHARACTERS && flow === null) socket.close();
    wake();
  });
  socket.addEventListener('close', () => {
    is_closed = true;
    wake();
  });
  return (async function* () {
    for (;;) {
      const text = received.shift();
      if (text !== undefined) {
        yield text;
        unread -= text.length;
        if (unread <= HELD_MIN_CHARACTERS) flow?.resume();
      } else if (is_closed) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  })();
}
