import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { nowMs } from './numbers.ts';
import { serve } from './program.ts';

/** Where to connect, and what to say first. */
export interface Call {
  to: { host: string; port: number } | { path: string };
  head: string;
}

export interface Told {
  /** The status line of the answer. */
  status: string;
  /** Bytes that were received after it, with the rest of the head. */
  bytes: number;
  took_ms: number;
}

export type FileClientVerbs = {
  /** Receives until the other side ends. */
  take: (call: Call) => Promise<Told>;
  /** Sends so many bytes, and receives until the other side ends. With `half_close`, nothing else says where they end. */
  send: (call: Call & { bytes: number; half_close: boolean }) => Promise<Told>;
};

const PIECE = Buffer.alloc(1024 * 1024, 'x');
const ROOM = Buffer.alloc(256 * 1024);

/** What is received goes to one buffer: the client must cost less than what it measures. */
async function exchange({ to, head }: Call, send: (socket: Socket) => Promise<void>): Promise<Told> {
  let [bytes, status] = [0, ''];
  const onread = {
    buffer: ROOM,
    callback: (length: number) => {
      if (bytes === 0) status = ROOM.toString('latin1', 0, Math.min(length, 32)).split('\r\n')[0] ?? '';
      bytes += length;
      return true;
    },
  };
  const began_ms = nowMs();
  const socket = connect({ ...to, onread, allowHalfOpen: true });
  const ended = once(socket, 'end');
  if (head !== '') socket.write(head, 'latin1');
  await send(socket);
  await ended;
  const took_ms = nowMs() - began_ms;
  socket.destroy();
  return { status, bytes, took_ms };
}

async function sendBytes(socket: Socket, count: number): Promise<void> {
  for (let left = count; left > 0; left -= PIECE.length) {
    const is_taken = socket.write(left < PIECE.length ? PIECE.subarray(0, left) : PIECE);
    if (!is_taken) await once(socket, 'drain');
  }
}

serve<FileClientVerbs>({
  take: (call) => exchange(call, async () => {}),
  send: ({ bytes, half_close, ...call }) =>
    exchange(call, async (socket) => {
      await sendBytes(socket, bytes);
      if (half_close) socket.end();
    }),
});
