import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** One request as it came over a raw connection. */
export interface RawRequest {
  head: string;
  body: string;
  socket: Socket;
  /** Counts the connections of the server, from 1. */
  connection: number;
}

export interface RawServer {
  url: string;
  requests: RawRequest[];
  /** Connections made so far, and how many of them are open. */
  connections: number;
  open: number;
}

/** A server that speaks bytes: `answer` gets each complete request and does to its connection what it likes. */
export async function rawServer(answer: (request: RawRequest) => void): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    state.open += 1;
    const connection = ++state.connections;
    socket.on('close', () => {
      sockets.delete(socket);
      state.open -= 1;
    });
    socket.on('error', () => {});
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      for (;;) {
        const end = text.indexOf('\r\n\r\n');
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
        if (end < 0 || text.length < end + 4 + length) return;
        const request = {
          head: text.slice(0, end),
          body: text.slice(end + 4, end + 4 + length),
          socket,
          connection,
        };
        text = text.slice(end + 4 + length);
        state.requests.push(request);
        answer(request);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const state: RawServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    requests: [],
    connections: 0,
    open: 0,
  };
  onTestFinished(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  return state;
}
