import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { DaemonRuntime } from '../../../support/manager/daemon-runtime.ts';
import { startManager } from '../../../support/manager/running-manager.ts';
import { exchange, statusesOf } from '../../../support/raw-exchange.ts';
import { scratchFolder } from '../../../support/scratch.ts';

/** A sandbox with a server that does to its connections what it likes. */
async function scene(answer: (socket: Socket, received: string) => void) {
  const running = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, {
    runtime: new DaemonRuntime(),
  });
  const writer = await running.client('team_1', 'sandboxes:write');
  const id = await writer.claim();
  const received: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    const number = received.push('') - 1;
    socket.on('data', (bytes) => {
      received[number] += bytes.toString('latin1');
      answer(socket, received[number] ?? '');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const path = `/api/v1/sandboxes/${id}/ports/${(server.address() as AddressInfo).port}`;
  const port = Number(new URL(running.manager.url).port);
  const send = (head: string, body = '', then: Parameters<typeof exchange>[3] = null) => {
    const [line = '', ...headers] = head.split('\n');
    const [method, target] = line.split(' ');
    const lines = [
      `${method} ${path}${target} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${writer.token}`,
      ...headers,
    ];
    return exchange(port, `${lines.join('\r\n')}\r\n\r\n${body}`, undefined, then);
  };
  return { ...running, writer, received, sockets, send };
}

const UPGRADE =
  '\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==';

describe('a hostile server in a sandbox', () => {
  it('gets and gives header bytes as they came, in any order of headers', async () => {
    const value = Buffer.from('attachment; filename="ü€.txt"').toString('latin1');
    const { send, received } = await scene((socket) => {
      const head = `HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Disposition: ${value}\r\nX-Other: ${value}\r\n\r\nhi`;
      socket.end(head, 'latin1');
    });
    const sent = 'attachment; filename="ü€.txt"';
    const answer = await send(
      `POST /\nContent-Length: 2\nContent-Disposition: ${sent}\nX-Other: ${sent}\nConnection: close`,
      'ab',
    );
    expect(String(answer).split(sent).length + String(answer).split(value).length - 2).toBe(2);
    expect((received[0] ?? '').split(value)).toHaveLength(3);
  });

  it.each([
    [
      'a switch of protocols that nobody asked for',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi',
    ],
    ['a status that is none', 'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n'],
    ['interim answers without an end', 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'.repeat(5_000)],
    ['headers without an end', `HTTP/1.1 200 OK\r\n${'X-Pad: 1234567890\r\n'.repeat(20_000)}\r\n`],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\nx'],
    [
      'a length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a bare line feed', 'HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b=c\r\nContent-Length: 0\r\n\r\n\x00'],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['nothing', ''],
  ])('is refused with 502 where it answers %s, and nothing of it is left', async (_, answer) => {
    const { send, writer, sockets } = await scene((socket, received) => {
      if (received.endsWith('\r\n\r\n')) socket.end(answer, 'latin1');
    });
    expect(statusesOf(await send('GET /'))).toEqual([502]);
    const upgraded = await send(`GET /${UPGRADE}`);
    expect(statusesOf(upgraded)).toEqual([502]);
    expect(upgraded.toLowerCase()).not.toContain('set-cookie');
    await eventually(() => expect(sockets.size).toBe(0));
    expect((await writer.get('/api/v1/sandboxes')).status).toBe(200);
  });

  it('breaks off where it answers less than it says, and ends where it answers more', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: ';
    const less = await scene((socket) => socket.end(`${head}100\r\n\r\nshort`));
    expect((await less.send('GET /')).endsWith('short')).toBe(true);
    const more = await scene((socket) =>
      socket.end(`${head}2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad`),
    );
    expect((await more.send('GET /')).endsWith('\r\n\r\nok')).toBe(true);
  });

  it('gives no length to an answer that has no body', async () => {
    const { send } = await scene((socket) =>
      socket.end('HTTP/1.1 204 No Content\r\nContent-Length: 50\r\n\r\n'),
    );
    const answer = await send('GET /');
    expect(statusesOf(answer)).toEqual([204]);
    expect(answer.toLowerCase()).not.toContain('content-length');
  });

  it('is cut at the length that it says also in a long answer, and the next answer is the next', async () => {
    const long = 'x'.repeat(3_000_000);
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${long.length}\r\n\r\n`;
    const next = {
      after: (received: Buffer) => received.length >= long.length + head.length,
      write: 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
    };
    const more = await scene((socket) => socket.end(`${head}${long}HTTP/1.1 200 OK\r\nForged: 1\r\n\r\n`));
    const received = await more.send('GET /', '', next);
    expect(statusesOf(received)).toEqual([200, 200]);
    expect(received).not.toContain('Forged');
    expect(received.indexOf(`${long}HTTP/1.1 200 OK\r\n`)).toBe(received.indexOf('\r\n\r\n') + 4);
    await eventually(() => expect(more.sockets.size).toBe(0));
    const less = await scene((socket) => socket.end(head + long.slice(1)));
    expect(statusesOf(await less.send('GET /', '', next))).toEqual([200]);
  });

  it('begins a WebSocket only as one begins, and without headers of its own', async () => {
    const head =
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: a=b\r\n';
    const forged = await scene((socket) => socket.write(`${head}\r\n`));
    expect(statusesOf(await forged.send(`GET /${UPGRADE}`))).toEqual([502]);
    await eventually(() => expect(forged.sockets.size).toBe(0));
    const odd = await scene((socket) =>
      socket.write(`${head}Sec-WebSocket-Accept: ${'A'.repeat(27)}=\r\nSec-WebSocket-Protocol: v1\r\n\r\n`),
    );
    const received = await odd.send(`GET /${UPGRADE}`);
    expect(statusesOf(received)).toEqual([101]);
    expect(received).toMatch(/^Sec-WebSocket-Protocol: v1\r$/m);
    expect(received.toLowerCase()).not.toContain('set-cookie');
  });
});

describe('a request to a port', () => {
  const inner = 'POST /smuggled HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n';
  const chunked = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;

  it.each([
    ['GET /', `Content-Length: ${inner.length}`, inner],
    ['GET /', 'Transfer-Encoding: chunked', chunked],
    ['DELETE /', 'Transfer-Encoding: chunked', chunked],
    ['POST /', `Content-Length: ${inner.length}\nConnection: close, content-length`, inner],
    ['POST /', 'Transfer-Encoding: chunked\nConnection: close, transfer-encoding', chunked],
    ['POST /', `Content-Length: ${inner.length}\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c`, inner],
  ])('is framed as it was read: %s with %s', async (line, framing, body) => {
    const { send, received } = await scene((socket, text) => {
      if (/smuggled/.test(text)) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
    expect(statusesOf(await send(`${line}\n${framing}`, body))).toEqual([200]);
    const [head = '', ...rest] = (received[0] ?? '').split('\r\n\r\n');
    const lengths = head.match(/^(content-length|transfer-encoding): .*$/gim);
    const is_chunked = framing.startsWith('Transfer');
    expect(lengths).toEqual([is_chunked ? 'transfer-encoding: chunked' : `content-length: ${inner.length}`]);
    expect(rest.join('\r\n\r\n')).toContain(inner.trimEnd());
    expect(received.length).toBe(1);
    expect(head).toMatch(/^host: localhost:\d+\r?$/m);
    expect(head).not.toMatch(/authorization|upgrade|http2/i);
  });

  it.each([
    `GET /\nContent-Length: ${inner.length}${UPGRADE}`,
    `GET /\nTransfer-Encoding: chunked${UPGRADE}`,
    'POST /\nContent-Length: 4\nTransfer-Encoding: chunked',
    'POST /\nTransfer-Encoding: xchunked',
    'GET /\nContent-Length: 1\nContent-Length: 2',
    'GET /\nX: a\x01b',
  ])('is refused where it could be read in two ways: %j', async (head) => {
    const { send, received } = await scene((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    expect(statusesOf(await send(head, chunked))[0]).toBe(400);
    expect(received.join('')).not.toContain('smuggled');
  });
});
