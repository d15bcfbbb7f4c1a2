import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  handleOf,
  holdReading,
  listenOn,
  refuseRequests,
  replaceClosing,
  responseInProgress,
  serverOf,
} from '../../../src/base/engine/node-http.ts';

function serverWith(listener: RequestListener): Server {
  const server = createServer(listener);
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return server;
}

async function listening(server: Server): Promise<number> {
  listenOn(server, '127.0.0.1', 0);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Sends this to a port; resolves with the whole answer once the server has ended the connection. */
async function send(port: number, request: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(request);
  return text(socket);
}

const GET = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n';

describe('Node still has', () => {
  it('_listen2, by which a server listens without looking its address up', async () => {
    const server = serverWith((_request, response) => response.end('heard'));
    expect(server).toHaveProperty('_listen2', expect.any(Function));
    server.listen = () => expect.unreachable('this Node has another last step of listen');
    const port = await listening(server);
    expect(server.address()).toEqual({ address: '127.0.0.1', family: 'IPv4', port });
    expect(await send(port, GET)).toMatch(/heard/);
  });

  it('server, in which a socket names the server that accepted it', async () => {
    const seen: unknown[] = [];
    const server = serverWith((request, response) => {
      seen.push(serverOf(request.socket));
      response.end();
    });
    await send(await listening(server), GET);
    expect(seen).toEqual([server]);
  });

  it('_httpMessage, in which a socket names the response that it is sending', async () => {
    const seen: unknown[] = [];
    const sockets: Socket[] = [];
    const server = serverWith((request, response) => {
      sockets.push(request.socket);
      seen.push(responseInProgress(request.socket) === response);
      response.end();
    });
    await send(await listening(server), GET);
    expect(seen).toEqual([true]);
    expect(sockets.map(responseInProgress)).toEqual([undefined]);
  });

  it('destroySoon as the way in which it closes a connection after the last response', async () => {
    const replaced = Promise.withResolvers<string>();
    const server = serverWith((request, response) => {
      const { socket } = request;
      response.prependOnceListener('finish', () => {
        replaceClosing(socket, () => {
          replaced.resolve('called');
          socket.end();
        });
      });
      // Closed otherwise, the connection ends without the replaced method.
      socket.once('close', () => replaced.resolve('not called: this Node closes connections in another way'));
      response.end();
    });
    const answer = send(await listening(server), GET);
    expect(await replaced.promise).toBe('called');
    expect(await answer).toMatch(/^HTTP\/1.1 200 OK/);
  });

  it('onIncoming, which a connection calls with the head of each request, and takes an answer of 2 as an upgrade', async () => {
    const server = serverWith((_request, response) => response.end('heard'));
    server.on('connection', (socket) =>
      refuseRequests(socket, () => responseInProgress(socket) !== undefined),
    );
    const behind = new Promise((resolve) =>
      server.once('upgrade', (_request, socket, head) => {
        socket.destroy();
        resolve(head);
      }),
    );
    const first = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
    const answer = send(await listening(server), `${first + GET}what follows`).catch(() => '');
    expect(String(await behind)).toBe('what follows');
    await answer;
  });
});

it("_handle, the kernel's side of a connection, which is gone once that is closed", async () => {
  const server = serverWith((_request, response) => response.end());
  const accepted = once(server, 'connection');
  const client = connect(await listening(server), '127.0.0.1');
  onTestFinished(() => void client.destroy());
  const [socket] = (await accepted) as [Socket];
  expect(handleOf(socket)).toHaveProperty('fd');
  socket.destroy();
  await once(socket, 'close');
  expect(handleOf(socket)).toBeNull();
});

it('readStart and readStop of it, by which a connection is not read until it is released', async () => {
  const server = serverWith((_request, response) => response.end('heard'));
  const accepted = once(server, 'connection');
  const client = connect(await listening(server), '127.0.0.1');
  onTestFinished(() => void client.destroy());
  const [socket] = (await accepted) as [Socket];
  const release = holdReading(socket);
  expect(release).not.toBeNull();
  const answer = once(client, 'data');
  client.write(GET);
  socket.resume();
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  expect(socket.bytesRead).toBe(0);
  release?.();
  expect(String((await answer)[0])).toMatch(/^HTTP\/1.1 200 /);
});

it('an address that is no plain one is listened on in the documented way', async () => {
  const server = serverWith((_request, response) => response.end());
  const called: unknown[] = [];
  server.listen = (...given: unknown[]) => {
    called.push(...given);
    return server;
  };
  listenOn(server, '127.0.0.2', 0);
  expect(called).toEqual([{ host: '127.0.0.2', port: 0, ipv6Only: true }]);
});
