import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { Type } from 'typebox';
import { expect, it, onTestFinished } from 'vitest';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { type Handlers, serve } from '../../../src/base/http/serve.ts';
import { createLog } from '../../../src/base/log.ts';
import type { Given } from '../../../src/base/options.ts';
import { namedObject, Text } from '../../../src/contract/field.ts';
import type { Routes } from '../../../src/contract/routes/route.ts';
import type { ManagerCall } from '../../../src/manager/api/call.ts';
import { eventually } from '../../support/eventually.ts';
import { DaemonRuntime } from '../../support/manager/daemon-runtime.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

const HELLO = {
  sayHello: {
    method: 'GET',
    path: '/hello/:sandbox_id',
    tag: 'sandboxes',
    summary: 'Say what a sandbox is doing',
    data: namedObject('Hello', { hello: Text, ttl: Type.Unknown() }),
  },
} as const satisfies Routes;

/** A whole door: an API of its own over the manager's, which it knows by the rows and the port alone. */
const helloHandlers = (call: ManagerCall): Handlers<typeof HELLO> => ({
  async sayHello({ params, request }) {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? null;
    const { id, status, expires_at } = await call('getSandbox', { token, address: request.ip }, { params });
    return { hello: `${id} is ${status}`, ttl: expires_at };
  },
});

async function scene(file: Given = {}) {
  const runtime = new DaemonRuntime();
  const database = `sqlite:${join(scratchFolder(), 'manager.db')}`;
  const { manager, client } = await startManager(database, { runtime, file });
  const call = manager.call as ManagerCall;
  const door = createHttpApp(createLog('silent'));
  await serve(door, HELLO, helloHandlers(call), () => ({}));
  onTestFinished(() => door.close());
  const hello = async (sandbox_id: string, token: string | null) => {
    const headers = { host: 'door', ...(token === null ? {} : { authorization: `Bearer ${token}` }) };
    const { statusCode, body } = await door.inject({ url: `/hello/${sandbox_id}`, headers });
    return { status: statusCode, ...JSON.parse(body) };
  };
  const team = await client('team_1', 'sandboxes:write', 'webhooks:read');
  const sandbox_id = await team.claim();
  return {
    client,
    call,
    hello,
    team,
    who: { token: team.token, address: '192.0.2.1' },
    params: { sandbox_id },
  };
}

it('gives a door the data of a route, of its caller’s team alone', async () => {
  const { hello, team, client, params } = await scene();
  const { sandbox_id } = params;
  expect(await hello(sandbox_id, team.token)).toMatchObject({
    status: 200,
    data: { hello: `${sandbox_id} is running` },
  });
  const stranger = await client('team_2', 'sandboxes:read');
  expect(await hello(sandbox_id, stranger.token)).toMatchObject({
    status: 404,
    error: { code: 'not_found' },
  });
});

it('refuses a door’s callers as it refuses its own', async () => {
  const { hello, call, team, client, params } = await scene();
  const other = await client('team_1', 'usage:read');
  expect(await hello(params.sandbox_id, null)).toMatchObject({
    status: 401,
    error: { code: 'unauthorized' },
  });
  expect(await hello(params.sandbox_id, other.token)).toMatchObject({
    status: 403,
    error: { code: 'forbidden', details: { scope: 'sandboxes:read' } },
  });
  // No rights but those of the token: not those of a header that the door hands on.
  const headers = { authorization: `Bearer ${team.token}` };
  const nobody = { token: null, address: '192.0.2.1' };
  await expect(call('getSandbox', nobody, { params, headers })).rejects.toMatchObject({
    code: 'unauthorized',
  });
});

it('charges a door’s calls to the team of their callers', async () => {
  const rate = { dimension: 'api_requests', limit_value: 3, interval_ms: 3_600_000, burst_value: 3 };
  const { hello, team, params } = await scene({ default_team_quotas: [rate] });
  // The claim was the first.
  expect((await hello(params.sandbox_id, team.token)).status).toBe(200);
  expect((await team.get(`/api/v1/sandboxes/${params.sandbox_id}`)).status).toBe(200);
  expect(await hello(params.sandbox_id, team.token)).toMatchObject({
    status: 429,
    error: { code: 'quota_exceeded', details: { dimension: 'api_requests', limit: 3 } },
  });
});

it('takes what a row describes, and refuses the rest as ever', async () => {
  const { call, who, params } = await scene();
  const { sandbox_id } = await call('claimSandbox', who, {
    body: { config: { metadata: { of: 'a door' } } },
  });
  const { sandboxes } = await call('listSandboxes', who, { query: { metadata: ['of:a door'], limit: 5 } });
  expect(sandboxes.map(({ id }) => id)).toEqual([sandbox_id]);
  expect(await call('deleteSandbox', who, { params: { sandbox_id } })).toEqual({
    message: 'The sandbox is being deleted.',
  });
  const wrong = { config: { ttl: -1 } };
  await expect(call('changeSandbox', who, { params, body: wrong })).rejects.toMatchObject({
    code: 'invalid_request',
    details: { field: 'config.ttl' },
  });
  const strange = { sandbox_id: '../../v1/usage/windows?x=\ud800' };
  await expect(call('getSandbox', who, { params: strange })).rejects.toMatchObject({ code: 'not_found' });
});

it('passes calls through to sandboxes', async () => {
  const { call, who, params } = await scene();
  const body = { shell: 'echo $GREETING; exit 3', env: { GREETING: 'hello' } };
  const ran = await call('startProcess', who, { params, query: { wait_ms: 20_000 }, body });
  expect(ran).toMatchObject({ state: 'exited', exit_code: 3, output: { stdout: 'hello\n' } });
  const { process_id } = ran;
  const { processes } = await call('listProcesses', who, { params });
  expect(processes).toMatchObject([{ process_id }]);
  const output = await call('readProcessOutput', who, { params: { ...params, process_id } });
  expect([output.status, output.headers['content-type']]).toEqual([200, 'text/event-stream']);
  expect(await text(output.body)).toContain('hello');
  const nobody = { ...params, process_id: 'proc_nobody' };
  await expect(call('readProcessOutput', who, { params: nobody })).rejects.toMatchObject({
    code: 'not_found',
  });
  expect(
    await call('removeFile', who, { params, query: { path: scratchFolder(), recursive: true } }),
  ).toEqual({ deleted: true });
});

it('streams bodies both ways, byte for byte', async () => {
  const { call, who, params } = await scene();
  const path = join(scratchFolder(), 'file');
  const bytes = Buffer.alloc(3_000_000, 'bytes of a file ');
  const pieces = Array.from({ length: 30 }, (_, i) => bytes.subarray(i * 100_000, (i + 1) * 100_000));
  const written = await call('writeFile', who, { params, query: { path }, body: Readable.from(pieces) });
  expect(written).toMatchObject({ size: bytes.length });
  const { headers, body } = await call('downloadFile', who, { params, query: { path } });
  expect(headers['content-length']).toBe(String(bytes.length));
  expect((await buffer(body)).equals(bytes)).toBe(true);
  const range = await call('downloadFile', who, { params, query: { path }, headers: { range: 'bytes=0-4' } });
  expect([range.status, await text(range.body)]).toEqual([206, 'bytes']);
});

it('follows the feed until the door lets go of it', async () => {
  const { call, who, params } = await scene();
  const { body } = await call('listEvents', who, { follow: true });
  const read: string[] = [];
  body.setEncoding('utf8').on('data', (piece) => read.push(piece));
  await call('deleteSandbox', who, { params });
  await eventually(() => expect(read.join('')).toContain('event: sandbox.deleted'));
  body.destroy();
  const page = await call('listEvents', who, {});
  expect(page.events.map(({ event_type }) => event_type)).toContain('sandbox.deleted');
});

it('opens a WebSocket', async () => {
  const { call, who, params } = await scene();
  const started = await call('startProcess', who, { params, body: { command: ['cat'], stdin: 'pipe' } });
  const { process_id } = started;
  const headers = { 'sec-websocket-key': `${'A'.repeat(22)}==`, 'sec-websocket-version': '13' };
  const { status, socket, head } = await call('attachProcess', who, {
    params: { ...params, process_id },
    headers,
  });
  const read = [head];
  socket.on('data', (piece: Buffer) => read.push(piece));
  const stdin = { ...params, process_id };
  await call('writeProcessStdin', who, { params: stdin, body: 'a line\n' });
  await eventually(() => expect(Buffer.concat(read).toString('latin1')).toContain('a line'));
  expect(status).toBe(101);
  socket.destroy();
});

it('passes what a server in a sandbox answers on, whatever it is', async () => {
  const { call, who, params } = await scene();
  const server = createServer(async (request, response) => {
    response.writeHead(404).end(`${request.method} ${request.url} ${await text(request)}`);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const port = String((server.address() as AddressInfo).port);
  const to = {
    params: { ...params, port, '*': 'a%2Fb/c' },
    query: { q: 1 },
    method: 'PUT',
    body: 'bytes',
  } as const;
  const { status, body } = await call('callPortPath', who, to);
  expect([status, await text(body)]).toEqual([404, 'PUT /a%2Fb/c?q=1 bytes']);
  const outside = { ...to, params: { ...to.params, '*': 'x?y' } };
  await expect(call('callPortPath', who, outside)).rejects.toMatchObject({ code: 'invalid_request' });
});

it('ends a call that its caller gives up', async () => {
  const { call, who, params } = await scene();
  const { process_id } = await call('startProcess', who, { params, body: { command: ['sleep', '60'] } });
  const giving_up = new AbortController();
  const named = { ...params, process_id };
  const waiting = call('waitForProcess', who, { params: named, signal: giving_up.signal });
  giving_up.abort();
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
});

it('stops the build of a door that asks for what no row describes', async () => {
  const { call, who, params } = await scene();
  // @ts-expect-error: there is no such route.
  await expect(call('breakSandbox', who, { params })).rejects.toThrow();
  // @ts-expect-error: the daemon's own routes are not passed through.
  await expect(call('initSandbox', who, { params })).rejects.toThrow();
  // @ts-expect-error: the path names a sandbox.
  await expect(call('getSandbox', who, {})).rejects.toMatchObject({ code: 'not_found' });
  // @ts-expect-error: a ttl is a number.
  const change = call('changeSandbox', who, { params, body: { config: { ttl: '1h' } } });
  await expect(change).rejects.toMatchObject({ details: { field: 'config.ttl' } });
});
