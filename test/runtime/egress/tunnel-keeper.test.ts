import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { ConnectServer } from '../../../src/runtime/egress/connect-server.ts';
import { Dialer } from '../../../src/runtime/egress/dialer.ts';
import { TunnelKeeper } from '../../../src/runtime/egress/tunnel-keeper.ts';
import { ConnectError } from '../../../src/webhook/attempt-error.ts';
import { eventually } from '../../support/eventually.ts';
import { rawServer } from '../../support/hostile-server.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { LOOPBACK } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

const TUNNELS_MAX = 16;
const OPENED_PER_SECOND = 256;
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: sandboxd-egress\r\n\r\n';

interface Tunnel {
  socket: Socket;
  text: string;
}

/** What may sit behind a control socket: it accepts every upgrade, and `use` does to the tunnel what it likes. */
async function hostileDaemon(use: (tunnel: Tunnel) => void) {
  const path = join(scratchFolder(), 'control.sock');
  const tunnels: Tunnel[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const tunnel = { socket, text: '' };
    let is_open = false;
    tunnels.push(tunnel);
    socket.on('error', () => {});
    socket.on('close', () => state.open--);
    state.open += 1;
    socket.setEncoding('latin1').on('data', (text: string) => {
      tunnel.text += text;
      if (is_open || !tunnel.text.endsWith('\r\n\r\n')) return;
      is_open = true;
      tunnel.text = '';
      socket.write(SWITCH);
      use(tunnel);
    });
  });
  const state = { path, tunnels, open: 0, server };
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    for (const { socket } of tunnels) socket.destroy();
    server.close();
  });
  return state;
}

/** Keeps tunnels to a daemon for a webhook at `authority`. */
function keep(
  socket_path: string,
  authority: string,
  clock = systemClock,
  dialer: Pick<Dialer, 'dial'> = new Dialer(clock, LOOPBACK),
) {
  const seen = { troubles: [] as string[], gone: 0 };
  const keeper = new TunnelKeeper({
    address: socket_path,
    opened_per_second: OPENED_PER_SECOND,
    isGone: ({ code }: NodeJS.ErrnoException) => code === 'ECONNREFUSED' || code === 'ENOENT',
    authority,
    carry: async (connection) => connection,
    clock,
    server: new ConnectServer(clock, dialer),
    onTrouble: (reason) => seen.troubles.push(reason),
    onGone: () => {
      seen.gone += 1;
    },
  });
  onTestFinished(() => keeper.stop());
  keeper.fill();
  return { keeper, seen };
}

const connectTo = (authority: string) => `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`;

describe('a daemon that has been taken over', () => {
  it('reaches nothing but the host and port of its webhook', async () => {
    const [consumer, other] = [await rawServer(() => {}), await rawServer(() => {})];
    const [authority, elsewhere] = [new URL(consumer.url).host, new URL(other.url).host];
    const wrong = [
      connectTo(elsewhere),
      connectTo(`localhost:${new URL(consumer.url).port}`),
      `GET http://${elsewhere}/ HTTP/1.1\r\nHost: ${elsewhere}\r\n\r\n`,
      `${connectTo(authority).slice(0, -2)}X: ${'y'.repeat(8_192)}\r\n\r\n`,
      'no HTTP at all\r\n\r\n',
    ];
    const tries = [...wrong, connectTo(authority)];
    const { path, tunnels } = await hostileDaemon(({ socket }) => socket.write(tries.shift() ?? ''));
    keep(path, authority);
    await eventually(() => expect(tunnels[wrong.length]?.text).toMatch(/^HTTP\/1\.1 200 /));
    for (const [i, { text, socket }] of tunnels.slice(0, wrong.length).entries()) {
      expect(text).toMatch(i < 2 ? /^HTTP\/1\.1 403 [\s\S]*error=destination_ip_prohibited/ : /^$/);
      await eventually(() => expect(socket.readableEnded).toBe(true));
    }
    expect([consumer.connections, other.connections]).toEqual([1, 0]);
  });

  it('gets 16 tunnels at most, however long it keeps them', async () => {
    const consumer = await rawServer(() => {});
    const authority = new URL(consumer.url).host;
    const daemon = await hostileDaemon(({ socket }) => socket.write(connectTo(authority)));
    keep(daemon.path, authority);
    await eventually(() => expect(consumer.connections).toBe(TUNNELS_MAX));
    expect(daemon.tunnels).toHaveLength(TUNNELS_MAX);
    // Only one that it has ended on its side makes room for another.
    daemon.tunnels[3]?.socket.end();
    await eventually(() => expect(consumer.connections).toBe(TUNNELS_MAX + 1));
    expect([daemon.tunnels.length, daemon.open]).toEqual([TUNNELS_MAX + 1, TUNNELS_MAX]);
    expect(consumer.open).toBe(TUNNELS_MAX);
  });

  it('keeps its one tunnel busy if it never ends its request', async () => {
    const clock = new ManualClock();
    const { path, tunnels } = await hostileDaemon(({ socket }) => socket.write('CONNECT consumer.exa'));
    const { keeper } = keep(path, 'consumer.example:80', clock);
    await eventually(() => expect(tunnels).toHaveLength(1));
    await clock.advance(3_600_000);
    expect([tunnels.length, clock.timers]).toEqual([1, 0]);
    keeper.stop();
    await eventually(() => expect(tunnels[0]?.socket.readableEnded).toBe(true));
  });

  it('has its connection given up if it closes the tunnel meanwhile', async () => {
    const path = join(scratchFolder(), 'control.sock');
    const authority = 'consumer.example:80';
    const sockets: Socket[] = [];
    // It leaves the request unread, so that its close is seen before anything is read or written.
    const server = createServer({ pauseOnConnect: true }, (socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.write(`${SWITCH}${connectTo(authority)}`);
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    onTestFinished(() => void server.close());
    let [dialled, dialling] = [0, 0];
    const dial = (_authority: string, signal: AbortSignal) => {
      [dialled, dialling] = [dialled + 1, dialling + 1];
      for (const socket of sockets.splice(0)) socket.destroy();
      return new Promise<Socket>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          dialling -= 1;
          reject(new ConnectError('connect', 'given up'));
        });
      });
    };
    const clock = new ManualClock();
    keep(path, authority, clock, { dial });
    await eventually(() => expect(dialled).toBe(OPENED_PER_SECOND));
    await eventually(() => expect(dialling).toBe(0));
  });

  it.each<[string, (tunnel: Tunnel) => void]>([
    ['ends', ({ socket }) => socket.end()],
    ['asks in vain on', ({ socket }) => socket.end(connectTo('elsewhere.example:80'))],
  ])('gets no more than 256 tunnels in a second where it %s each', async (_, use) => {
    const clock = new ManualClock();
    const { path, tunnels } = await hostileDaemon(use);
    keep(path, 'consumer.example:80', clock);
    await eventually(() => expect(tunnels).toHaveLength(OPENED_PER_SECOND));
    await clock.advance(999);
    expect(tunnels).toHaveLength(OPENED_PER_SECOND);
    await clock.advance(1);
    await eventually(() => expect(tunnels).toHaveLength(2 * OPENED_PER_SECOND));
  });

  it('holds up its consumer if it does not read', async () => {
    const bytes = 16 * 1024 * 1024;
    const consumer = await rawServer(({ socket }) => socket.write(Buffer.alloc(bytes)));
    const authority = new URL(consumer.url).host;
    const daemon = await hostileDaemon(({ socket }) => {
      if (daemon.tunnels.length === 1) socket.pause();
      socket.write(`${connectTo(authority)}${daemon.tunnels.length === 1 ? 'POST / HTTP/1.1\r\n\r\n' : ''}`);
    });
    keep(daemon.path, authority);
    await eventually(() => expect(consumer.connections).toBe(TUNNELS_MAX));
    const [request] = await eventually(() => {
      expect(consumer.requests).toHaveLength(1);
      return consumer.requests;
    });
    expect(request?.socket.writableLength).toBe(bytes);
    daemon.tunnels[0]?.socket.resume();
    await eventually(() => expect(daemon.tunnels[0]?.text.length).toBeGreaterThan(bytes));
    expect(request?.socket.writableLength).toBe(0);
  });
});

describe('a daemon that opens no tunnel', () => {
  it('is asked again after a second where it refuses, and no more once it has ended', async () => {
    const clock = new ManualClock();
    let asked = 0;
    const daemon = await hostileDaemon(() => {});
    daemon.server.removeAllListeners('connection').on('connection', (socket) => {
      asked += 1;
      socket.end('HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n');
    });
    const { seen } = keep(daemon.path, 'consumer.example:80', clock);
    await eventually(() => expect(seen.troubles).toEqual(['the daemon answered 409']));
    await clock.advance(999);
    expect(asked).toBe(1);
    await clock.advance(1);
    await eventually(() => expect(seen.troubles).toHaveLength(2));
    daemon.server.close();
    await clock.advance(1_000);
    await eventually(() => expect(seen.gone).toBe(1));
    expect(clock.timers).toBe(0);
  });

  it('and does not answer costs one connection, until the end', async () => {
    const daemon = await hostileDaemon(() => {});
    let open = 0;
    daemon.server.removeAllListeners('connection').on('connection', (socket) => {
      open += 1;
      socket.resume().once('end', () => open--);
    });
    const { keeper } = keep(daemon.path, 'consumer.example:80');
    await eventually(() => expect(open).toBe(1));
    keeper.stop();
    await eventually(() => expect(open).toBe(0));
  });
});
