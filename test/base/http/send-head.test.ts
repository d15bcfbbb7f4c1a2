import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { sendHead } from '../../../src/base/http/send-head.ts';

const VALUE = Buffer.from('attachment; filename="ü€.txt"').toString('latin1');

async function answerOf(method: string, headers: Record<string, string>): Promise<string> {
  const server = createServer((_request, response) => {
    sendHead(response, 200, Object.entries(headers));
    response.end('hi');
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(`${method} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  return (await buffer(socket)).toString();
}

it.each<Record<string, string>>([
  { 'Content-Length': '2', 'Content-Disposition': VALUE, 'X-Other': VALUE },
  { 'Content-Disposition': VALUE, 'X-Other': VALUE, 'content-length': '2' },
  { 'X-Other': VALUE, 'Content-Disposition': VALUE },
])('header values arrive as the bytes that they were: %j', async (headers) => {
  const names = Object.keys(headers).filter((name) => name.toLowerCase() !== 'content-length');
  for (const method of ['GET', 'HEAD']) {
    const answer = await answerOf(method, headers);
    for (const name of names) expect(answer).toContain(`${name}: attachment; filename="ü€.txt"\r\n`);
    expect(answer.endsWith('hi\r\n0\r\n\r\n') || answer.endsWith('\r\n\r\nhi')).toBe(method === 'GET');
  }
});
