import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ApiError } from '../../src/contract/errors.ts';
import { hold, requestDaemon } from '../../src/runtime/control-client.ts';
import { daemonError, namesIn } from '../../src/runtime/daemon-requests.ts';
import { scratchFolder } from '../support/scratch.ts';

/** A control socket behind which somebody else has put himself. */
async function hostile(answer: (socket: Socket, asked: string) => void) {
  const path = join(scratchFolder(), 'control.sock');
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', (bytes) => answer(socket, bytes.toString('latin1')));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return path;
}

const json = (status: number, body: unknown) => (socket: Socket) => {
  const text = JSON.stringify(body);
  socket.end(`HTTP/1.1 ${status} X\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
};

/** Writes for as long as somebody reads. */
function endless(socket: Socket, head: string, chunk: string): void {
  socket.write(head);
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  more();
}

const question = { method: 'POST', path: '/sandbox/pause', within_ms: 20_000 };

describe('a question to a daemon', () => {
  it('names what it may reach', async () => {
    const heads: string[] = [];
    const path = await hostile((socket, asked) => {
      heads.push(asked);
      json(200, { data: {} })(socket);
    });
    await requestDaemon(path, question);
    await requestDaemon(path, { ...question, method: 'GET', path: '/sandbox' });
    expect(heads[0]).toMatch(/^x-control-scope: manage\r$/im);
    expect(heads[1]).toMatch(/^x-control-scope: read\r$/im);
  });

  it.each([
    [
      'a body without an end',
      (socket: Socket) => endless(socket, 'HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(65_536)),
    ],
    [
      'interim answers without an end',
      (socket: Socket) => endless(socket, '', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)),
    ],
    [
      'headers without an end',
      (socket: Socket) => endless(socket, 'HTTP/1.1 200 OK\r\n', 'X: y\r\n'.repeat(100)),
    ],
    ['no JSON', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{"a')],
    [
      'another protocol',
      (socket: Socket) =>
        socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    ],
  ])('that is answered by %s ends as one that nobody has answered', async (_, answer) => {
    expect(await requestDaemon(await hostile(answer), question)).toMatchObject({ outcome: 'unreachable' });
  });

  it.each([
    [null],
    ['text'],
    [7],
    [[]],
    [{ code: 7, message: { a: 1 }, details: { field: { length: 3 } } }],
    [{ code: 'quota_exceeded', message: 'x', details: null }],
    [{ code: 'unauthorized', message: 'your token is no longer valid' }],
    [{ code: '__proto__', message: [] }],
    [{ code: 'toString', details: 3 }],
    [
      {
        code: 'invalid_request',
        message: 'x'.repeat(100_000),
        details: { field: 'x'.repeat(100_000), more: 1 },
      },
    ],
  ])('that is refused with an odd error is refused in the words of the catalogue: %j', async (error) => {
    const answer = await requestDaemon(await hostile(json(500, { success: false, error })), question);
    const told = daemonError(answer);
    expect(told).toBeInstanceOf(ApiError);
    expect(['internal_error', 'invalid_request']).toContain(told.code);
    expect(told.message.length).toBeLessThanOrEqual(1024);
    expect(told.details).toBeUndefined();
  });

  it('takes only texts for names', async () => {
    for (const names of [null, 'x', { length: 2 }, [1, null, 'A', {}]]) {
      const answer = await requestDaemon(await hostile(json(200, { data: { names } })), question);
      expect(namesIn(answer)).toEqual(Array.isArray(names) ? ['A'] : []);
    }
    expect(namesIn(await requestDaemon(await hostile(json(200, null)), question))).toEqual([]);
  });

  it('holds no more than one line’s worth of a hold that never ends its line', async () => {
    const before = process.memoryUsage().rss;
    let written = 0;
    const path = await hostile((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const more = () => {
        while (!socket.destroyed && written < 512 * 1024 * 1024) {
          written += 65_536;
          if (!socket.write('x'.repeat(65_536))) return;
        }
        socket.end();
      };
      socket.on('drain', more);
      more();
    });
    const held = await hold(path, 20_000);
    if ('outcome' in held) throw new Error(held.outcome);
    await held.release();
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
  });
});
