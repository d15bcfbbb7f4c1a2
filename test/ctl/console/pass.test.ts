import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer as createRaw } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import type { ServerLink } from '../../../src/ctl/api/server-link.ts';
import { passRequest } from '../../../src/ctl/console/pass.ts';

/** What a console answers where its daemon answers `head`. */
async function answerTo(head: string): Promise<IncomingMessage> {
  const daemon = createRaw((socket) => {
    socket.on('error', () => {}).end(`${head}Content-Length: 0\r\n\r\n`, 'latin1');
  }).listen(0, '127.0.0.1');
  await once(daemon, 'listening');
  const ask = async () => {
    const [answer] = await once(
      get({ port: (daemon.address() as AddressInfo).port, agent: false }),
      'response',
    );
    return answer;
  };
  const server = createServer((request, response) => {
    void passRequest({ ask } as unknown as ServerLink, '/files', request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    daemon.close();
    server.close();
  });
  const [answer] = await once(
    get({ port: (server.address() as AddressInfo).port, agent: false }),
    'response',
  );
  return answer.resume();
}

it('passes header bytes on as they came', async () => {
  const etag = Buffer.from('"ü€"').toString('latin1');
  const { statusCode, headers } = await answerTo(`HTTP/1.1 200 OK\r\nETag: ${etag}\r\n`);
  expect([statusCode, headers.etag]).toEqual([200, etag]);
});

it('answers 502 where an answer cannot be passed on', async () => {
  expect((await answerTo('HTTP/1.1 042 Odd\r\n')).statusCode).toBe(502);
});
