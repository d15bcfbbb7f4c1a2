import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run, start } from '../../support/ctl/sandboxctl.ts';
import { refuse, StandInDaemon, succeed } from '../../support/ctl/stand-in-daemon.ts';
import { eventually } from '../../support/eventually.ts';

const RUNNING = { process_id: 'p', state: 'running', exit_code: null, signal: null, exited_at: null };
const ENDED = { ...RUNNING, state: 'exited', exit_code: 6, exited_at: '2026-01-01T00:00:00.000Z' };

/** A request for output, still unanswered but for its headers. */
interface Asked {
  query: string;
  last_id: string | undefined;
  response: ServerResponse;
}

let daemon: StandInDaemon;
let env: NodeJS.ProcessEnv;
/** Those for events, and those for the bytes of one stream. */
let asked: Record<'events' | 'stdout' | 'stderr', Asked[]>;

beforeEach(async () => {
  daemon = new StandInDaemon();
  env = { SANDBOXD_URL: await daemon.start() };
  asked = { events: [], stdout: [], stderr: [] };
  daemon.on('POST /processes', (_, response) => succeed(response, 201, RUNNING));
  daemon.on('GET /processes/p', (_, response) => succeed(response, 200, ENDED));
  daemon.on('GET /processes/p/output', ({ url, headers }, response) => {
    const [, query = ''] = url.split('?');
    const is_events = headers.accept === 'text/event-stream';
    const { offset = '0', stream = '' } = Object.fromEntries(new URLSearchParams(query));
    const type = { 'content-type': headers.accept as string };
    response.writeHead(200, is_events ? type : { ...type, 'x-output-offset': offset }).flushHeaders();
    const kind = is_events ? 'events' : (stream as 'stdout' | 'stderr');
    asked[kind].push({ query, last_id: headers['last-event-id'] as string | undefined, response });
  });
});

afterEach(() => daemon.stop());

async function stream(kind: keyof typeof asked, index = 0): Promise<ServerResponse> {
  await eventually(() => expect(asked[kind].length).toBeGreaterThan(index), { timeout: 60_000 });
  return (asked[kind][index] as Asked).response;
}

/** The process ends, having written nothing more. */
async function end(index = 0): Promise<void> {
  for (const kind of ['stdout', 'stderr'] as const) (await stream(kind, index)).end();
}

function send(response: ServerResponse, id: string, event: string, data: unknown): void {
  response.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Starts `sandboxctl` with stderr where its stdout goes, as at a terminal. */
const startMerged = (args: string[]) => start(args, env, { merged: true });

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
    const killed = { ...ENDED, exit_code: 143, signal: 'SIGTERM', timed_out: true };
    daemon.on('GET /processes/p', (_, response) => succeed(response, 200, killed));
    const running = start(['run', '--timeout', '2s', '--', 'x'], env);
    await end();
    const { code, stderr } = await running.ended();
    expect([code, stderr]).toEqual([143, 'sandboxctl: p was ended: it ran longer than 2.0 s (--timeout)\n']);
  });

  it('writes both streams as the bytes that they are', async () => {
    const running = start(['run', '--', 'x'], env);
    (await stream('stderr')).write('{"type":');
    (await stream('stdout')).write(Buffer.from([0x61, 0xff]));
    await running.wrote(/a.*"type":/);
    await end();
    const { code, stdout, stderr } = await running.ended();
    expect([code, stdout, stderr]).toEqual([6, 'a\ufffd', '{"type":']);
    expect(requests()[0]).toBe('POST /processes?lossless=true');
    for (const kind of ['stdout', 'stderr'] as const) {
      expect(asked[kind]).toMatchObject([{ query: `stream=${kind}&follow=true&lossless=true` }]);
    }
  });

  it('goes on behind the last byte after a lost connection, and tells that once', async () => {
    const running = start(['run', '--', 'x'], env);
    (await stream('stdout')).write('abc');
    await stream('stderr');
    await running.wrote(/abc/);
    daemon.dropConnections();
    (await stream('stdout', 1)).write('def');
    await end(1);
    const expected = { code: 6, stdout: 'abcdef', stderr: 'sandboxctl: connection lost; retrying\n' };
    expect(await running.ended()).toEqual(expected);
    expect(asked.stdout[1]?.query).toMatch(/&offset=3$/);
    expect(asked.stderr[1]?.query).toMatch(/&offset=0$/);
  });

  it('goes on where the answers have ended and the process has not', async () => {
    const views = [RUNNING, ENDED];
    daemon.on('GET /processes/p', (_, response) => succeed(response, 200, views.shift()));
    const running = start(['run', '--', 'x'], env);
    (await stream('stdout')).write('abc');
    await end();
    (await stream('stdout', 1)).write('def');
    await end(1);
    expect(await running.ended()).toEqual({ code: 6, stdout: 'abcdef', stderr: '' });
    expect(asked.stdout[1]?.query).toMatch(/&offset=3$/);
  });

  it('tells what is missing where the kept bytes no longer reach back', async () => {
    const running = start(['run', '--', 'x'], env);
    (await stream('stdout')).write('abc');
    await running.wrote(/abc/);
    daemon.on('GET /processes/p/output', ({ url }, response) => {
      if (url.endsWith('offset=3')) return refuse(response, 410, 'gone', 'stdout is kept from offset 9 on.');
      const offset = url.includes('stdout') ? 9 : 0;
      response.writeHead(200, { 'content-type': 'application/octet-stream', 'x-output-offset': offset });
      response.end(url.includes('stdout') ? 'x' : '');
    });
    daemon.dropConnections();
    const { code, stdout, stderr } = await running.ended();
    expect([code, stdout]).toEqual([6, 'abcx']);
    expect(stderr).toMatch(/6 bytes of stdout are no longer kept\n$/);
  });

  it('gives up where a stream does not say where it begins', async () => {
    daemon.on('GET /processes/p/output', (_, response) => {
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end('x');
    });
    const { code, stdout, stderr } = await run(['run', '--', 'x'], env);
    expect([code, stdout]).toEqual([125, '']);
    expect(stderr).toMatch(/^sandboxctl: .* answered without X-Output-Offset\n$/);
  });

  it('takes both streams in their order where they go to one place, and writes nothing twice', async () => {
    const running = startMerged(['run', '--', 'x']);
    send(await stream('events'), '3-0', 'output', output(0, 'abc'));
    await running.wrote(/abc/);
    daemon.dropConnections();
    const second = await stream('events', 1);
    const query = expect.stringMatching(/^follow=true&lossless=true$/);
    expect(asked.events).toMatchObject([{ query }, { last_id: '3-0', query }]);
    send(second, '6-1', 'output', { stream: 'stderr', offset: 0, data: '-' });
    send(second, '6-1', 'output', output(1, 'bcdef'));
    send(second, '6-1', 'exit', ENDED);
    const lost = 'sandboxctl: connection lost; retrying\n';
    expect(await running.ended()).toEqual({ code: 6, stdout: `abc${lost}-def`, stderr: '' });
  });

  it('begins anew where the kept events no longer reach back, and tells what is missing', async () => {
    const running = startMerged(['run', '--', 'x']);
    send(await stream('events'), '3-0', 'output', output(0, 'abc'));
    await running.wrote(/abc/);
    daemon.on('GET /processes/p/output', ({ headers }, response) => {
      if (headers['last-event-id']) return refuse(response, 410, 'gone', 'stdout is kept from offset 9 on.');
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      send(response, '10-0', 'output', output(9, 'x'));
      send(response, '10-0', 'exit', ENDED);
    });
    daemon.dropConnections();
    const { code, stdout } = await running.ended();
    expect(code).toBe(6);
    expect(stdout).toMatch(/^abc.*6 bytes of stdout are no longer kept\nx$/s);
  });

  it('hands each signal on, and gives up with 125 where the daemon cannot be reached for it', async () => {
    const running = start(['run', '--', 'x'], env);
    daemon.on('POST /processes/p/signal', (_, response) => void response.writeHead(204).end());
    await stream('stdout');
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
    running.child.stdin.end('hello');
    await eventually(() => expect(taken).toHaveLength(3), { timeout: 60_000 });
    await end();
    expect((await running.ended()).code).toBe(6);
    expect(taken).toEqual([
      ['offset=0', 'hello'],
      ['offset=0', 'hello'],
      ['offset=5&end=true', ''],
    ]);
  });

  it('tells that the end is not known, and is then no success', async () => {
    daemon.on('GET /processes/p', (_, response) => succeed(response, 200, { ...ENDED, exit_code: null }));
    const running = start(['run', '--', 'x'], env);
    await end();
    expect(await running.ended()).toEqual({
      code: 125,
      stdout: '',
      stderr: 'sandboxctl: it is unknown how p ended\n',
    });
  });
});
