import { once } from 'node:events';
import { Agent } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { createHttpApp } from '../../../../src/base/http/app.ts';
import { createLog } from '../../../../src/base/log.ts';
import type { AccountProcesses } from '../../../../src/daemon/api/files/account-processes.ts';
import { DIRECT_LENGTH_HEADER } from '../../../../src/daemon/api/files/direct-bodies.ts';
import { forwardToAccount } from '../../../../src/daemon/api/files/forward.ts';
import { scratchFolder } from '../../../support/scratch.ts';

/** Asks an app whose process for file operations gives this answer, byte by byte. */
async function forwarded(answer: string) {
  const socket_path = join(scratchFolder(), 'process');
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(answer, 'latin1'));
  }).listen(socket_path);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const use = {
    socket_path,
    agent: new Agent(),
    lost: new AbortController().signal,
    pass: () => {},
    lasts: () => {},
    done: () => {},
  };
  const processes = { use: async () => use } as unknown as AccountProcesses;
  const app = createHttpApp(createLog('silent'));
  onTestFinished(() => app.close());
  const route = { answer: 'read', kind: 'transfer', changes_files: false } as const;
  const options = { clock: systemClock, idle_timeout_ms: 0 };
  app.get('/', (request, reply) => forwardToAccount(processes, route, { request, reply }, options));
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.addresses()[0] as { port: number };
  return fetch(`http://127.0.0.1:${port}/`);
}

it.each(['', `${DIRECT_LENGTH_HEADER}: 4\r\n`])(
  'says so where a head cannot be passed on (%j)',
  async (more) => {
    const answer = await forwarded(`HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n${more}\r\n`);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ error: { code: 'unavailable' } });
  },
);

it('passes the bytes of headers on as they came', async () => {
  const name = Buffer.from('ü€').toString('latin1');
  const { status, headers } = await forwarded(
    `HTTP/1.1 200 OK\r\nX-Name: ${name}\r\nContent-Length: 0\r\n\r\n`,
  );
  expect([status, headers.get('x-name')]).toEqual([200, name]);
});
