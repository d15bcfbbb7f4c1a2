import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Connections, createListener, type ListenerOptions } from '../../../src/base/http/listener.ts';

const GET = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
const POST = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}';
const UPGRADE = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';
const CONNECT = 'CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n';
const EXPECTING = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nexpect: anything\r\n\r\n{}';

/** A listener that notes its requests, of which nothing is answered but what the test answers. */
async function startListener(options?: ListenerOptions) {
  const routed: [IncomingMessage, ServerResponse][] = [];
  let onRouted = () => {};
  const connections = new Connections();
  const routing = (request: IncomingMessage, response: ServerResponse) => {
    routed.push([request, response]);
    onRouted();
  };
  const server = createListener({ routing, methodsOf: () => [] }, connections, options);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    connections.close();
  });
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  const next = async (count: number) => {
    while (routed.length < count) await new Promise<void>((resolve) => (onRouted = resolve));
    return routed[count - 1] as [IncomingMessage, ServerResponse];
  };
  return { client, routed, next };
}

/** Resolves once everything that a client has sent was read or is left to the kernel. */
async function taken(client: Socket): Promise<void> {
  client.write(POST.repeat(100_000));
  await new Promise((resolve) => setImmediate(resolve));
}

describe('a request that arrives before the one before it is answered', () => {
  it.each(Object.entries({ GET, POST, UPGRADE, CONNECT, EXPECTING }))(
    'is not served, and neither are 5000 of them: %s',
    async (_name, request) => {
      const { client, routed, next } = await startListener();
      client.write(POST + request.repeat(5_000));
      const [first, response] = await next(1);
      await taken(client);
      expect(first.socket.bytesRead).toBeLessThan(1_000_000);
      response.end('the answer');
      const answer = await text(client);
      expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n(.+\r\n)*connection: close\r\n[\s\S]*the answer$/i);
      expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect(routed).toHaveLength(1);
    },
  );

  it('does not cut off an answer for which the client has to be waited for', async () => {
    const { client, routed, next } = await startListener();
    client.write(GET + GET);
    const [, response] = await next(1);
    const sent = pipeline(
      Readable.from(Array.from({ length: 400 }, () => Buffer.alloc(64_000, 'x'))),
      response,
    );
    const answer = await text(client);
    await sent;
    expect(answer.match(/x+/g)?.reduce((sum, { length }) => sum + length, 0)).toBe(25_600_000);
    expect(routed).toHaveLength(1);
  });

  it('does not cut off an answer that is begun already', async () => {
    const { client, routed, next } = await startListener();
    client.write(GET);
    const [request, response] = await next(1);
    response.write('one ');
    await once(client, 'readable');
    client.write(POST.repeat(5_000));
    while (request.socket.bytesRead < 1_000) await new Promise((resolve) => setImmediate(resolve));
    response.end('two');
    expect(await text(client)).toMatch(/one [\s\S]*two/);
    expect(routed).toHaveLength(1);
  });
});

describe('a request that arrives after the one before it is answered', () => {
  it('is served', async () => {
    const { client, next } = await startListener();
    for (const count of [1, 2, 3]) {
      client.write(POST);
      const [, response] = await next(count);
      response.end('well');
      await once(client, 'data');
    }
    client.write(UPGRADE);
    const [, response] = await next(4);
    response.end('well');
    expect(await text(client)).toMatch(/connection: close/i);
  });

  it('is not served where a connection carries one request', async () => {
    const { client, routed, next } = await startListener({ one_request: true });
    client.write(POST);
    const [{ socket }, response] = await next(1);
    response.end('the answer', () => client.write(POST.repeat(10)));
    expect(await text(client).catch(() => 'reset')).toMatch(/the answer$|reset/);
    if (!socket.destroyed) await once(socket, 'close');
    expect(routed).toHaveLength(1);
  });
});
