import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { networkProblem } from '../../src/network/problem.ts';
import { eventually } from '../support/eventually.ts';
import { claimedFrom } from '../support/manager/built-manager.ts';

const metered = (await networkProblem()) === null ? (['metered'] as const) : [];

/** A server on a port of a sandbox's loopback, of its interface, or both. */
const serverOn = (host: string) =>
  `require('http').createServer((q, r) => r.end(process.env.SANDBOXD_URL + ' ' + q.url)).listen(8000, '${host}')`;

describe('a port of an isolated sandbox', () => {
  it.each(['none', ...metered] as const)(
    'is reached with --network %s, and nothing of the machine is',
    async (network) => {
      const { call, path } = await claimedFrom('--network', network);
      const host_service = createServer((_, response) => response.end('of the machine')).listen(0, '::');
      await once(host_service, 'listening');
      onTestFinished(() => void host_service.close());
      const { port } = host_service.address() as AddressInfo;

      const none = await call('GET', `${path}/ports/8000/`);
      expect([none.status, JSON.parse(none.text).error.message]).toEqual([
        502,
        'Nobody listens on port 8000 of the sandbox.',
      ]);
      const command = ['/opt/sandboxd/node', '-e', serverOn('127.0.0.1')];
      const started = await call('POST', `${path}/processes`, { command, ready: { port: 8000 } });
      expect(started.status).toBe(201);
      await eventually(async () => {
        expect((await call('GET', `${path}/ports/8000/a?b`)).text).toBe('http://127.0.0.1:49983 /a?b');
      });
      expect((await call('GET', `${path}/ports/${port}/`)).status).toBe(502);
      expect((await call('GET', `${path}/ports/49983/healthz`)).status).toBe(403);
      await call('POST', `${path}/pause`);
      expect((await call('GET', `${path}/ports/8000/`)).status).toBe(409);
    },
  );

  it("is refused with --network host-unmetered: nobody could tell it from the machine's", async () => {
    const { call, path } = await claimedFrom('--network', 'host-unmetered');
    const { status, text } = await call('GET', `${path}/ports/8000/`);
    expect([status, JSON.parse(text).error.code]).toEqual([409, 'conflict']);
  });
});
