import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run, start } from '../../support/ctl/sandboxctl.ts';
import { refuse, StandInDaemon, succeed } from '../../support/ctl/stand-in-daemon.ts';
import { eventually } from '../../support/eventually.ts';

const RUNNING = { process_id: 'p', state: 'running', exit_code: null, signal: null, exited_at: null };
const ENDED = { ...RUNNING, state: 'exited', exit_code: 6, exited_at: '2026-01-01T00:00:00.000Z' };

let daemon: StandInDaemon;
let env: NodeJS.ProcessEnv;
let streams: { url: string; last_id: string | undefined; response: ServerResponse }[];

beforeEach(async () => {
  daemon = new StandInDaemon();
  env = { SANDBOXD_URL: await daemon.start() };
  streams = [];
  daemon.on('POST /processes', (_, response) => succeed(response, 201, RUNNING));
  daemon.on('GET /processes/p', (_, response) => succeed(response, 200, RUNNING));
  daemon.on('GET /processes/p/output', ({ url, headers }, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    streams.push({ url, last_id: headers['last-event-id'] as string | undefined, response });
  });
});

afterEach(() => daemon.stop());

async function stream(index: number): Promise<ServerResponse> {
  await eventually(() => expect(streams.length).toBeGreaterThan(index), { timeout: 60_000 });
  return (streams[index] as { response: ServerResponse }).response;
}

function send(response: ServerResponse, id: string, event: string, data: unknown): void {
  response.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

const output = (offset: number, data: string) => ({ stream: 'stdout', offset, data });
const requests = () => daemon.received.map(({ method, url }) => `${method} ${url.replace('/api/v1', '')}`);

describe('sandboxctl run', () => {
  it('asks for what the options say', async () => {
    daemon.on('POST /processes', (_, response) => refuse(response, 400, 'invalid_request', 'user: unknown'));
    const options = ['--name', 'n', '--cwd', '/x', '--env', 'A=1', '--timeout', '1.5m', '--user', 'u', '-i'];
    const { code, stderr } = await run(['run', ...options, '--', 'ls', '-la', '--help'], env);
    expect([code, stderr]).toEqual([125, 'sandboxctl: user: unknown (invalid_request)\n']);
    expect(JSON.parse(daemon.received[0]?.body ?? '')).toEqual({
      command: ['ls', '-la', '--help'],
      name: 'n',
      cwd: '/x',
      env: { A: '1' },
      timeout_ms: 90_000,
      user: 'u',
      stdin: 'pipe',
    });
  });

  it('says that the time-out has ended it, and has its code', async () => {
    const running = start(['run', '--timeout', '2s', '--', 'x'], env);
    const killed = { ...ENDED, exit_code: 143, signal: 'SIGTERM', timed_out: true };
    send(await stream(0), '0-0', 'exit', killed);
    const { code, stderr } = await running.ended();
    expect([code, stderr]).toEqual([143, 'sandboxctl: p was ended: it ran longer than 2.0 s (--timeout)\n']);
  });

  it('goes on behind the last event after a lost connection, and writes nothing twice', async () => {
    const running = start(['run', '--', 'x'], env);
    send(await stream(0), '3-0', 'output', output(0, 'abc'));
    await running.wrote(/abc/);
    daemon.dropConnections();
    const second = await stream(1);
    const asked = expect.stringMatching(/follow=true&lossless=true/);
    expect(streams).toMatchObject([{ url: asked }, { last_id: '3-0', url: asked }]);
    expect(requests()[0]).toBe('POST /processes?lossless=true');
    send(second, '6-0', 'output', output(1, 'bcdef'));
    send(second, '6-0', 'exit', ENDED);
    expect(await running.ended()).toEqual({
      code: 6,
      stdout: 'abcdef',
      stderr: 'sandboxctl: connection lost; retrying\n',
    });
  });

  it('begins anew where the kept output no longer reaches back, and tells what is missing', async () => {
    const running = start(['run', '--', 'x'], env);
    send(await stream(0), '3-0', 'output', output(0, 'abc'));
    await running.wrote(/abc/);
    daemon.on('GET /processes/p/output', ({ headers }, response) => {
      if (headers['last-event-id']) return refuse(response, 410, 'gone', 'stdout is kept from offset 9 on.');
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      send(response, '10-0', 'output', output(9, 'x'));
      send(response, '10-0', 'exit', ENDED);
    });
    daemon.dropConnections();
    const { code, stdout, stderr } = await running.ended();
    expect([code, stdout]).toEqual([6, 'abcx']);
    expect(stderr).toMatch(/6 bytes of stdout are no longer kept\n$/);
  });

  it('hands each signal on, and gives up with 125 where the daemon cannot be reached for it', async () => {
    const running = start(['run', '--', 'x'], env);
    daemon.on('POST /processes/p/signal', (_, response) => void response.writeHead(204).end());
    await stream(0);
    running.child.kill('SIGINT');
    await eventually(() => expect(requests()).toContain('POST /processes/p/signal'), { timeout: 60_000 });
    expect(JSON.parse(daemon.received.at(-1)?.body ?? '')).toEqual({ signal: 'SIGINT' });
    await daemon.stop();
    await running.wrote(/retrying/);
    const { code, stderr } = await running.ended('SIGTERM');
    expect([code, stderr]).toEqual([125, expect.stringMatching(/cannot reach the daemon/)]);
  });

  it('repeats a piece of stdin at its offset where its answer was lost', async () => {
    let answers = 0;
    const taken: [string, string][] = [];
    daemon.on('POST /processes/p/stdin', ({ url, body }, response) => {
      taken.push([url.split('?')[1] ?? '', body]);
      if (++answers === 1) response.destroy();
      else response.writeHead(204).end();
    });
    const running = start(['run', '-i', '--', 'x'], env);
    const response = await stream(0);
    running.child.stdin.end('hello');
    await eventually(() => expect(taken).toHaveLength(3), { timeout: 60_000 });
    send(response, '0-0', 'exit', ENDED);
    expect((await running.ended()).code).toBe(6);
    expect(taken).toEqual([
      ['offset=0', 'hello'],
      ['offset=0', 'hello'],
      ['offset=5&end=true', ''],
    ]);
  });

  it('tells that the end is not known, and is then no success', async () => {
    const running = start(['run', '--', 'x'], env);
    send(await stream(0), '0-0', 'exit', { ...ENDED, exit_code: null });
    expect(await running.ended()).toEqual({
      code: 125,
      stdout: '',
      stderr: 'sandboxctl: it is unknown how p ended\n',
    });
  });
});
