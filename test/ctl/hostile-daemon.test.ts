import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { run, SANDBOXCTL } from '../support/ctl/sandboxctl.ts';
import { screen } from '../support/ctl/screen.ts';
import { StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';
import { atTerminal } from '../support/ctl/typed-terminal.ts';

/** Clears the screen, sets the title, goes on in eight-bit clothes, turns the direction of text, hides the rest. */
const ESCAPES = '\u001b[2J\u001b]0;title\u0007\u009b31m\u202e\u001b[8m';
const ACTED_UPON = /[\p{Cc}\u202e]/u;

async function standIn(answers: Record<string, unknown>): Promise<string[]> {
  const daemon = new StandInDaemon();
  onTestFinished(() => daemon.stop());
  for (const [route, data] of Object.entries(answers))
    daemon.on(route, (_, response) => succeed(response, 200, data));
  return ['--url', await daemon.start(), '--state-dir', '/none'];
}

async function served(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const E = ESCAPES;
const TIME = '2026-01-01T00:00:00.000Z';
const delivery = {
  ...{ event_id: E, event_type: E, sequence: 1, state: 'delivered', created_at: TIME, finished_at: TIME },
  ...{
    next_attempt_at: TIME,
    attempt_count: 1,
    last_status: null,
    last_error: E,
    body: E,
    headers: { [E]: E },
  },
  attempts: [
    { attempt: E, started_at: E, duration_ms: E, status: E, error: E, next_attempt_at: E, response_body: E },
  ],
};
const process_view = {
  ...{ process_id: E, pid: 1, state: E, exit_code: 1, exited_at: TIME, started_at: TIME, restart_count: 1 },
  ...{
    name: E,
    command: [E],
    resource_usage: { cpu_ms: 1, memory_bytes: 1, processes: 1 },
    ready: null,
    signal: E,
  },
};
const sandbox = {
  ...{ sandbox_id: E, team_id: E, state: E, version: E, uptime_ms: 1, watcher: null },
  outbox: { pending: E, delivered: E, failed: E, expired: E, foreign: E, bytes: 1 },
  endpoint: { health: E, next_probe_at: E, refusals: { status: E, count: E } },
  resource_usage: { cpu_ms: 1, memory_bytes: 1, processes: E },
};

describe('what a daemon says', () => {
  it.each([
    [['status'], { 'GET /sandbox': sandbox }],
    [['ps'], { 'GET /processes': { processes: [process_view] } }],
    [['deliveries'], { 'GET /webhook/deliveries': { deliveries: [delivery], next_cursor: null } }],
    [['show', 'a'], { 'GET /webhook/deliveries/a': delivery }],
    [['test'], { 'POST /webhook/test': delivery }],
    [['replay', 'a'], { 'POST /webhook/deliveries/a/replay': delivery }],
    [['stop', 'a'], { 'DELETE /processes/a': process_view }],
    [['publish', '{}'], { 'POST /webhook/publish': { event_id: E, sequence: E } }],
  ])('is shown by %j, and never acted upon by a terminal', async (args, answers) => {
    const { stdout, stderr } = await run([...(await standIn(answers)), ...args]);
    for (const text of [stdout, stderr]) expect(text.replaceAll('\n', '')).not.toMatch(ACTED_UPON);
    expect(stdout).toContain('\\u001b[2J');
  });

  it('is shown in errors, cut, without what a terminal acts upon', async () => {
    const url = await served((_, response) => {
      const error = { code: ESCAPES, message: ESCAPES + 'long'.repeat(1e6) };
      response.writeHead(500).end(JSON.stringify({ success: false, error }));
    });
    const { code, stderr } = await run(['status', '--url', url]);
    expect(code).toBe(1);
    expect(stderr.replaceAll('\n', '')).not.toMatch(ACTED_UPON);
    expect(stderr.length).toBeLessThan(5_000);
  });

  it('keeps the styles of this program alone', async () => {
    const { out, text } = screen(80);
    await out.line(`${out.style('red', 'own')} \u001b[31mforeign`);
    expect(text()).toBe('\u001b[31mown\u001b[39m \\u001b[31mforeign\n');
  });
});

describe('a row that makes no sense', () => {
  const bad_process = { ...process_view, process_id: `proc_${E}`, resource_usage: null };
  const bad_record = { ...delivery, event_id: 'evt_bad', created_at: 7 };
  const entry = {
    ...{ name: 'a', path: '/d/a', type: 'file', size: 1, mode: '0644', mod_time: TIME, is_link: false },
    ...{ link_target: null, uid: 0, gid: 0, user: 'root', group: 'root' },
  };
  const files = {
    'GET /files/stat': { ...entry, path: '/d', type: 'dir' },
    'GET /files/list': {
      path: '/d',
      entries: [{ ...entry, path: '/d/b', size: -1 }, entry],
      next_cursor: null,
    },
  };

  it.each<[string[], Record<string, unknown>, string, string]>([
    [
      ['ps'],
      { 'GET /processes': { processes: [null, process_view, bad_process] } },
      'COMMAND',
      'process number 3 is not shown: must be an object',
    ],
    [
      ['ps'],
      { 'GET /processes': { processes: [process_view, bad_process] } },
      'COMMAND',
      'resource_usage must be an object',
    ],
    [
      ['deliveries'],
      { 'GET /webhook/deliveries': { deliveries: [bad_record, delivery], next_cursor: null } },
      'EVENT TYPE',
      'record evt_bad is not shown: created_at must be a string',
    ],
    [['ls', '-l', '/d'], files, '0644', 'entry /d/b is not shown: size must be'],
  ])('is named, and the others are shown, by %j', async (args, answers, shown, named) => {
    const { code, stdout, stderr } = await run([...(await standIn(answers)), ...args]);
    expect([code, stdout.trimEnd().split('\n').length]).toEqual([1, 2]);
    expect(stdout).toContain(shown);
    expect(stderr).toContain(named);
    expect(stderr.replaceAll('\n', '')).not.toMatch(ACTED_UPON);
  });

  it('is in JSON as it is, and hinders no command for another', async () => {
    const processes = [null, bad_process, { ...process_view, process_id: 'proc_abc' }];
    const options = await standIn({
      'GET /processes': { processes },
      'DELETE /processes/proc_abc': { ...process_view, process_id: 'proc_abc' },
    });
    const { code, stdout } = await run([...options, 'ps', '--json']);
    expect([code, JSON.parse(stdout)]).toEqual([0, { processes: processes.toReversed() }]);
    expect(await run([...options, 'stop', 'ab'])).toMatchObject({ code: 0, stderr: '' });
  });

  it('may have what only a newer daemon knows', async () => {
    const newer = { ...process_view, state: 'frozen', more: 1 };
    const { code, stdout } = await run([
      ...(await standIn({ 'GET /processes': { processes: [newer] } })),
      'ps',
    ]);
    expect([code, stdout]).toEqual([0, expect.stringContaining('frozen')]);
  });
});

describe('content of the sandbox', () => {
  const CONTENT = '\u001b]0;title\u0007\u001b[31mred\u001b[0m\n';
  const commands: [string, ...string[]][] = [
    ['cat', '/a'],
    ['cp', ':/a', '-'],
    ['logs', 'a'],
  ];

  async function asked(): Promise<string[]> {
    const url = await served((request, response) => {
      const is_file = request.url?.includes('/files');
      response.writeHead(200, {
        'content-type': is_file ? 'application/octet-stream' : 'text/event-stream',
      });
      const piece = JSON.stringify({ stream: 'stdout', offset: 0, data: CONTENT });
      response.end(is_file ? CONTENT : `id: 1\nevent: output\ndata: ${piece}\n\n`);
    });
    return ['--url', url, '--state-dir', '/none'];
  }

  it.each(commands)('reaches a terminal with its colours alone: %s', async (...command) => {
    const terminal = atTerminal(process.execPath, [SANDBOXCTL, ...(await asked()), ...command], {});
    expect(await terminal.ended).toBe(0);
    expect(terminal.text()).toBe('\\u001b]0;title\\u0007\u001b[31mred\u001b[0m\r\n');
  });

  it.each(commands.filter(([verb]) => verb !== 'cp'))(
    'reaches a terminal as it is with --raw: %s',
    async (...command) => {
      const args = [SANDBOXCTL, ...(await asked()), ...command, '--raw'];
      const terminal = atTerminal(process.execPath, args, {});
      expect(await terminal.ended).toBe(0);
      expect(terminal.text()).toBe(CONTENT.replace('\n', '\r\n'));
    },
  );

  it.each(commands)('reaches a pipe as it is: %s', async (...command) => {
    const { stdout } = await run([...(await asked()), ...command]);
    expect(stdout).toBe(CONTENT);
  });
});

describe('an answer that is none of a daemon', () => {
  it.each([
    [['ps'], { 'GET /processes': {} }],
    [['status'], { 'GET /sandbox': null }],
    [['deliveries'], { 'GET /webhook/deliveries': { deliveries: 7, next_cursor: 'x' } }],
    [['show', 'a'], { 'GET /webhook/deliveries/a': { headers: 3 } }],
    [['stop', 'a'], { 'DELETE /processes/a': undefined }],
  ])('is one line and exit 1, for %j', async (args, answers) => {
    const { code, stderr } = await run([...(await standIn(answers)), ...args]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^sandboxctl: [^\n]+\n$/);
  });

  it('is given up where it does not end', async () => {
    const url = await served((_, response) => {
      const chunk = Buffer.alloc(1 << 20, 'x');
      const write = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', write);
      write();
    });
    const { code, stderr } = await run(['status', '--url', url]);
    expect([code, stderr]).toEqual([1, `sandboxctl: the answer of ${url} is too long\n`]);
  });

  it('is given up where pages never end and hold nothing', async () => {
    const options = await standIn({ 'GET /webhook/deliveries': { deliveries: [], next_cursor: 'more' } });
    expect(await run([...options, 'deliveries'])).toMatchObject({ code: 0, stdout: '' });
  });

  it('is given up where an event of a stream never ends', async () => {
    const url = await served((request, response) => {
      if (!request.url?.includes('/output')) return void response.writeHead(404).end();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = `data: ${'x'.repeat(1 << 20)}\n`;
      const write = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', write);
      write();
    });
    const { code, stderr } = await run(['logs', 'a', '--url', url]);
    expect([code, stderr]).toEqual([1, 'sandboxctl: the stream contains a line or event that is too long\n']);
  });

  it('lists as many as asked for of more, quickly, with cells of any length', async () => {
    const { body: _, headers: __, attempts: ___, ...listed } = delivery;
    const many = Array.from({ length: 200_000 }, (____, i) => ({ ...listed, event_id: `evt_${i}` }));
    many.splice(0, 1, { ...listed, event_type: 'x'.repeat(1e6) });
    const options = await standIn({ 'GET /webhook/deliveries': { deliveries: many, next_cursor: 'more' } });
    const { code, stdout } = await run([...options, 'deliveries', '--limit', '150000']);
    expect(code).toBe(0);
    expect(stdout.split('\n')).toHaveLength(150_002);
  });

  it('is one line where a frame of a terminal makes no sense, and where an exit code is none', async () => {
    for (const frame of [
      '{',
      'null',
      '{"type":"output"}',
      '{"type":"exit","process":{"exit_code":"none"}}',
    ]) {
      const server = createServer((_, response) => succeed(response, 201, { process_id: 'p' }));
      new WebSocketServer({ server }).on('connection', (socket) => {
        socket.send(frame);
        if (frame.includes('exit')) socket.close(1000);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      onTestFinished(() => void server.closeAllConnections());
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const { code, stderr } = await run(['--url', url, '--state-dir', '/none', 'run', '-t', '--', 'true']);
      expect(code).toBe(125);
      expect(stderr).toMatch(/^sandboxctl: [^\n]+\n$/);
    }
  });
});
