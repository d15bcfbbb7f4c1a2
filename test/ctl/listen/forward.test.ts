import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Running, run, start } from '../../support/ctl/sandboxctl.ts';
import { eventBody } from '../../support/ctl/stand-in-daemon.ts';

let target: Server;
let target_url: string;
let received: { raw_headers: string[]; body: Buffer; url: string | undefined }[];
let respond: (response: ServerResponse) => void;
let listener: Running;
let url: string;

beforeEach(async () => {
  received = [];
  respond = (response) => void response.writeHead(202, { 'X-Answer': 'taken' }).end('thank you');
  target = createServer(async (incoming, response) => {
    received.push({ raw_headers: incoming.rawHeaders, body: await buffer(incoming), url: incoming.url });
    respond(response);
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  target_url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/hook?x=1`;
  listener = start(['listen', '--port', '0', '--forward', target_url]);
  url = (await listener.wrote(/listening on (http:\S+)\n/))[1] ?? '';
});

afterEach(async () => {
  await listener.ended('SIGKILL');
  target.closeAllConnections();
  target.close();
});

const BODY = eventBody(7, '{ "price": 1.10, "text": "Grüße" }');
const HEADERS = [
  'Content-Type',
  'application/json',
  'X-Service-Signature',
  'abc',
  'ce-id',
  'evt_7',
  'X-Two',
  '1',
  'X-Two',
  '2',
];

function post(): Promise<IncomingMessage> {
  const headers = ['Host', 'localhost', ...HEADERS, 'Content-Length', String(Buffer.byteLength(BODY))];
  return new Promise((resolve, reject) => {
    request(url, { method: 'POST', headers, agent: false })
      .on('response', resolve)
      .on('error', reject)
      .end(BODY);
  });
}

describe('sandboxctl listen --forward', () => {
  it.each([
    'HTTP/1.1 042 Odd\r\n',
    'HTTP/1.1 99 Odd\r\n',
    'HTTP/1.1 000 Odd\r\n',
    'HTTP/1.1 1000 Odd\r\n',
    'HTTP/1.1 -20 Odd\r\n',
    'HTTP/1.1 199 Odd\r\n',
    'HTTP/1.1 101 Odd\r\nConnection: Upgrade\r\nUpgrade: x\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n',
    `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}\r\n`,
    'PRI * HTTP/2.0\r\n',
    '\u0000\u00ff\r\n',
    '',
    'nonsense\r\n',
    'HTTP/1.1 200 OK\r\nX: a\u0001b\r\n',
  ])('answers 502 and goes on where the target answers %j', async (head) => {
    target.removeAllListeners('request');
    target.on('connection', (socket) => {
      socket.on('error', () => {});
      socket.end(`${head}Content-Length: 0\r\n\r\n`);
    });
    expect((await post()).statusCode).toBe(502);
    expect((await post()).statusCode).toBe(502);
  });

  it('passes any final status back', async () => {
    for (const status of [200, 204, 304, 418, 600, 999]) {
      respond = (response) => void response.writeHead(status).end();
      expect((await post()).statusCode).toBe(status);
    }
  });

  it.each([
    'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nzz\r\n',
  ])('breaks off where the answer does, and goes on: %j', async (answer) => {
    target.removeAllListeners('request');
    target.on('connection', (socket) => {
      socket.on('error', () => {});
      socket.end(answer);
    });
    for (let i = 0; i < 2; i++) await expect(post().then(buffer)).rejects.toThrow('aborted');
  });

  it('drops the target when the sender goes', async () => {
    const closed = new Promise<void>((resolve) => {
      target.removeAllListeners('request');
      target.on('connection', (socket) => {
        socket.on('error', () => {}).on('close', () => resolve());
        socket.write('HTTP/1.1 103 Early\r\n\r\n');
      });
    });
    const gone = new AbortController();
    target.once('connection', () => gone.abort());
    const headers = { 'Content-Length': String(Buffer.byteLength(BODY)) };
    const sent = request(url, { method: 'POST', headers, agent: false, signal: gone.signal });
    sent.on('error', () => {}).end(BODY);
    await closed;
    await listener.wrote(/the sender has gone/);
  });

  it('passes the bytes and headers on, unchanged and in order', async () => {
    await post();
    expect(received).toHaveLength(1);
    expect(received[0]?.url).toBe('/hook?x=1');
    expect(received[0]?.body.toString()).toBe(BODY);
    expect(received[0]?.raw_headers).toEqual([
      'Host',
      new URL(target_url).host,
      ...HEADERS,
      'Content-Length',
      String(Buffer.byteLength(BODY)),
      'Connection',
      'close',
    ]);
  });

  it('answers what the forward answered, and prints it', async () => {
    const answer = await post();
    expect([answer.statusCode, answer.headers['x-answer']]).toEqual([202, 'taken']);
    expect((await buffer(answer)).toString()).toBe('thank you');
    await listener.wrote(new RegExp(`\\[${new URL(target_url).host}: answered 202\\] evt_`));
    respond = (response) => void response.writeHead(503).end();
    expect((await post()).statusCode).toBe(503);
  });

  it('answers 502 where the forward cannot be reached', async () => {
    respond = (response) => void response.destroy();
    expect((await post()).statusCode).toBe(502);
    await listener.wrote(/connection reset/);
  });

  it('takes http and https alone', async () => {
    const ended = await run(['listen', '--forward', 'localhost:1']);
    expect(ended).toEqual({
      code: 2,
      stdout: '',
      stderr: "sandboxctl: --forward must be http://… or https://…, not 'localhost:1'\n",
    });
  });
});
