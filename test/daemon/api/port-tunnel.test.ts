import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PORT_PROTOCOL, PORTS_PATH } from '../../../src/contract/control-socket.ts';
import { openTunnel } from '../../../src/runtime/egress/open-tunnel.ts';
import { startDaemon } from '../../support/daemon/running-daemon.ts';
import { scratchFolder } from '../../support/scratch.ts';

async function scene() {
  const control_socket = join(scratchFolder(), 'control.sock');
  const { daemon } = await startDaemon('--control-socket', control_socket);
  const open = (port: number | string, protocol = PORT_PROTOCOL) =>
    openTunnel(control_socket, { path: `${PORTS_PATH}/${port}`, protocol }, new AbortController().signal);
  return { daemon, open };
}

async function listen(host: string, onConnection: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    onConnection(socket);
  }).listen(0, host);
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

const own_address = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
const hosts = ['127.0.0.1', '::1', ...(own_address ? [own_address] : [])];

describe('a connection to a port through the control socket', () => {
  it.each(hosts)('reaches a server on %s', async (host) => {
    const { open } = await scene();
    const port = await listen(host, (socket) => socket.pipe(socket));
    const socket = await open(port);
    socket.write('hello');
    expect(String((await once(socket, 'data'))[0])).toBe('hello');
    socket.destroy();
  });

  it('carries everything that the server has sent before its end, however late it is read', async () => {
    const { open } = await scene();
    const sent = Buffer.alloc(5_000_000, 'any bytes, ');
    const port = await listen('127.0.0.1', (socket) => socket.end(sent));
    const socket = await open(port);
    const pieces: Buffer[] = [];
    for await (const piece of socket) {
      pieces.push(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(Buffer.concat(pieces).equals(sent)).toBe(true);
  });

  it('ends at the server when the manager closes it', async () => {
    const { open } = await scene();
    const closed = Promise.withResolvers<void>();
    const port = await listen('127.0.0.1', (socket) => socket.resume().on('close', () => closed.resolve()));
    const socket = await open(port);
    socket.write('x');
    socket.destroy();
    await closed.promise;
  });

  it("is refused for the daemon's own port, where nobody listens, and where it is none", async () => {
    const { open, daemon } = await scene();
    const port = await listen('127.0.0.1', () => {});
    await expect(open(new URL(daemon.url).port)).rejects.toMatchObject({ status: 403 });
    await expect(open(1)).rejects.toMatchObject({ status: 502 });
    for (const text of ['0', '65536', 'x']) await expect(open(text)).rejects.toMatchObject({ status: 400 });
    await expect(open(port, 'websocket')).rejects.toMatchObject({ status: 400 });
  });
});
