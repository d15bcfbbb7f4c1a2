import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { connectInside } from '../../../src/base/http/inner-connection.ts';

it('carries requests to a server that listens nowhere, from the address that it is made for', async () => {
  const server = createServer(async (request, response) => {
    response.end(`${request.socket.remoteAddress} ${await text(request)}`);
  });
  const createConnection = () => connectInside(server, '192.0.2.7');
  const outgoing = httpRequest({ createConnection, method: 'POST', headers: { host: 'x' } }).end(
    'says hello',
  );
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  expect(await text(answer)).toBe('192.0.2.7 says hello');
});

it('tells the server when the other side has gone', async () => {
  const server = createServer();
  const near = connectInside(server, '192.0.2.7');
  near.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [{ socket }, response] = await once(server, 'request');
  near.destroy();
  await Promise.all([once(socket, 'close'), once(response, 'close')]);
});

it('ends in the time that it is left, once what was written is read', async () => {
  const server = createServer();
  let far: Socket | undefined;
  server.on('connection', (socket) => {
    far = socket;
  });
  const near = connectInside(server, '192.0.2.7');
  far?.write('the end');
  far?.destroySoon();
  const closed = once(far as unknown as Socket, 'close');
  expect(await text(near)).toBe('the end');
  await closed;

  const slow = connectInside(server, '192.0.2.7');
  far?.setTimeout(1);
  await once(slow.resume(), 'close');
});
