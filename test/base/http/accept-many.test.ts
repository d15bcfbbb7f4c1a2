import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { serverOf } from '../../../src/base/engine/node-http.ts';
import { acceptMany } from '../../../src/base/http/accept-many.ts';
import { eventually } from '../../support/eventually.ts';

const CROWD = 40;

/** How many descriptors this process has of the socket that a server listens on. */
function descriptorsOf(server: Server): number {
  const { fd } = (server as Server & { _handle: { fd: number } })._handle;
  const socket = readlinkSync(`/proc/self/fd/${fd}`);
  return readdirSync('/proc/self/fd').filter((each) => target(each) === socket).length;
}

function target(fd: string): string | null {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return null; // that of the folder
  }
}

async function crowded() {
  const accepted: Socket[] = [];
  const server = createServer((_request, response) => response.end('hello'));
  acceptMany(server);
  server.on('connection', (socket) => accepted.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const clients: Socket[] = [];
  const join = async (count: number) => {
    for (let i = 0; i < count; i++) clients.push(connect(port, '127.0.0.1'));
    await eventually(() => expect(accepted).toHaveLength(clients.length));
  };
  onTestFinished(() => {
    for (const client of clients) client.destroy();
  });
  return { server, port, accepted, clients, join };
}

it('listens once while there are few connections, and on more descriptors once there are many', async () => {
  const { server, join } = await crowded();
  await join(10);
  expect(descriptorsOf(server)).toBe(1);
  await join(CROWD);
  await eventually(() => expect(descriptorsOf(server)).toBe(16));
});

it('serves those alike that come by any of them, also where they cannot be parsed', async () => {
  const { server, accepted, clients, join } = await crowded();
  await join(CROWD);
  await eventually(() => expect(descriptorsOf(server)).toBe(16));
  await join(CROWD);
  const refused: unknown[] = [];
  server.on('clientError', (_error, socket) => {
    refused.push(socket);
    socket.destroy();
  });
  expect(accepted.every((socket) => serverOf(socket) === server)).toBe(true);
  for (const client of clients.slice(-CROWD / 2)) client.write('what\r\n\r\n');
  const asked = clients.slice(CROWD, CROWD + CROWD / 2);
  for (const client of asked) client.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  for (const answer of await Promise.all(asked.map((client) => text(client))))
    expect(answer).toMatch(/hello$/);
  await eventually(() => expect(refused).toHaveLength(CROWD / 2));
});

it('accepts nobody any more once the server is closed', async () => {
  const { server, port, join } = await crowded();
  await join(CROWD);
  await eventually(() => expect(descriptorsOf(server)).toBe(16));
  server.close();
  const [error] = await once(connect(port, '127.0.0.1'), 'error');
  expect(error).toMatchObject({ code: 'ECONNREFUSED' });
});
