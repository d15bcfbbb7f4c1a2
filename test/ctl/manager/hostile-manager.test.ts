import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { selfSigned } from '../../support/certificate.ts';
import { run } from '../../support/ctl/sandboxctl.ts';
import { StandInDaemon, succeed } from '../../support/ctl/stand-in-daemon.ts';
import { scratchFolder } from '../../support/scratch.ts';

const ID = 'sbx_019a2b3c-4d5e-7f60-8123-000000000001';
/** Clears the screen, sets the title, goes on in eight-bit clothes, turns the direction of text, hides the rest. */
const E = '\u001b[2J\u001b]0;title\u0007\u009b31m\u202e\u001b[8m';
const TIME = '2026-01-01T00:00:00.000Z';
const ACTED_UPON = /[\p{Cc}\u202e]/u;
const ONE_LINE = /^sandboxctl: [^\n]+\n$/;

const traffic = { passed_bytes: 1, passed_packets: 1, dropped_bytes: 1, dropped_packets: 1, waited_ms: 1 };
const sandbox = {
  ...{
    id: E,
    template_id: E,
    team_id: E,
    status: E,
    failure: E,
    paused: false,
    auto_resume: true,
    pod_name: E,
    persistence: E,
  },
  ...{ runtime_generation: E, resources: { memory: E, cpu: E, disk: E }, network: { mode: E } },
  bandwidth: {
    egress_bandwidth_bytes_per_second: 1,
    ingress_bandwidth_bytes_per_second: 1,
    bandwidth_burst_bytes: 1,
  },
  network_usage: { egress: traffic, ingress: traffic },
  webhook: { url: E, watch_dir: E, watch_ignore: [E], events: [E], retry: E, has_secret: false },
  ...{ metadata: { [E]: E }, env_names: [E], expires_at: TIME, hard_expires_at: TIME, claimed_at: TIME },
  ...{ created_at: TIME, updated_at: TIME },
};
const quota = {
  dimension: E,
  unlimited: false,
  limit_value: 1,
  interval_ms: 1,
  burst_value: null,
  unit: E,
  source: E,
  current: null,
  remaining: null,
};
const window = { sandbox_id: E, window_type: E, window_start: TIME, window_end: TIME, value: 1, unit: E };

function tokenFile(): string {
  const path = join(scratchFolder(), 'token');
  writeFileSync(path, 'a-token');
  return path;
}

const options = (url: string) => ['--manager', url, '--token-file', tokenFile(), '--sandbox', ID];

async function answering(answers: Record<string, unknown>): Promise<string[]> {
  const manager = new StandInDaemon();
  onTestFinished(() => manager.stop());
  for (const [route, data] of Object.entries(answers))
    manager.on(route, (_, response) => succeed(response, 200, data));
  return options(await manager.start());
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

describe('what a manager says', () => {
  it.each([
    [['sandbox', 'show'], { [`GET /sandboxes/${ID}`]: sandbox }],
    [['sandbox', 'list'], { 'GET /sandboxes': { sandboxes: [sandbox], count: 1, has_more: false } }],
    [['sandbox', 'claim'], { 'POST /sandboxes': { sandbox_id: E, status: E } }],
    [['sandbox', 'fork'], { [`POST /sandboxes/${ID}/fork`]: { sandbox } }],
    [['sandbox', 'refresh'], { [`POST /sandboxes/${ID}/refresh`]: { expires_at: E } }],
    [['quota'], { 'GET /quotas': [quota] }],
    [['usage'], { 'GET /usage/windows': { windows: [window], next_cursor: E } }],
  ])('is shown by %j, and never acted upon by a terminal', async (args, answers) => {
    const { code, stdout, stderr } = await run([...(await answering(answers)), ...args]);
    expect([code, stderr]).toEqual([0, expect.anything()]);
    for (const text of [stdout, stderr]) expect(text.replaceAll('\n', '')).not.toMatch(ACTED_UPON);
    if (args[1] !== 'refresh') expect(stdout).toContain('\\u001b[2J');
  });
});

describe('a row that makes no sense', () => {
  const good = { ...sandbox, id: ID };
  const bad = { ...good, id: 'sbx_bad', resources: null };
  it.each<[string[], string, unknown, string]>([
    [
      ['sandbox', 'list'],
      'GET /sandboxes',
      { sandboxes: [null, bad, good], count: 3, has_more: false },
      'sandbox sbx_bad is not shown: resources must be an object',
    ],
    [['quota'], 'GET /quotas', [null, quota], 'quota number 1 is not shown: must be an object'],
    [
      ['usage'],
      'GET /usage/windows',
      { windows: [{ ...window, window_start: null }, window], next_cursor: 'a' },
      'window number 1 is not shown: window_start must be a string',
    ],
    [
      ['events', '--team'],
      'GET /events',
      { events: [null, { body: 'a\nb' }, { body: 'c' }], next_cursor: 'a' },
      'event number 1 is not shown: must be an object',
    ],
  ])('is named, and the others are shown, by %j', async (args, route, answer, named) => {
    const { code, stdout, stderr } = await run([...(await answering({ [route]: answer })), ...args]);
    expect([code, stdout.trimEnd().split('\n').length]).toEqual([1, 2]);
    expect(stderr).toContain(`sandboxctl: ${named}\n`);
  });

  it('hinders no command for another', async () => {
    const routes = {
      'GET /sandboxes': { sandboxes: [null, bad, good], count: 3, has_more: false },
      [`POST /sandboxes/${ID}/pause`]: {},
    };
    const { code, stdout } = await run([...(await answering(routes)), 'sandbox', 'pause', ID.slice(0, 20)]);
    expect([code, stdout]).toEqual([0, `${ID} is paused\n`]);
  });
});

describe('an answer that is none of a manager', () => {
  it.each([
    [['sandbox', 'show'], { [`GET /sandboxes/${ID}`]: null }],
    [['sandbox', 'claim'], { 'POST /sandboxes': null }],
    [['sandbox', 'fork'], { [`POST /sandboxes/${ID}/fork`]: {} }],
    [['usage'], { 'GET /usage/windows': { windows: 3 } }],
    [['ps'], { [`GET /sandboxes/${ID}/processes`]: {} }],
    [['stop', '.'], { [`GET /sandboxes/${ID}/processes`]: { processes: [{ process_id: '..' }] } }],
  ])('is one line and exit 1, for %j', async (args, answers) => {
    const { code, stderr } = await run([...(await answering(answers)), ...args]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
  });

  it('is given up where pages never end and hold nothing, or the same', async () => {
    const page = { sandboxes: [{ ...sandbox, id: ID }], count: 1e9, has_more: true };
    const again = await run([
      ...(await answering({ 'GET /sandboxes': page })),
      'sandbox',
      'list',
      '--limit',
      '500',
    ]);
    expect([again.code, again.stdout.split('\n')]).toEqual([0, expect.objectContaining({ length: 3 })]);
    const endless = { windows: [window], next_cursor: 'same' };
    const usage = await run([
      ...(await answering({ 'GET /usage/windows': endless })),
      'usage',
      '--limit',
      '9',
    ]);
    expect(usage.code).toBe(0);
  });

  it('is no file, no tree and no stream where its type is another', async () => {
    const url = await served((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Please log in</html>');
    });
    for (const args of [
      ['cat', '/etc/hosts'],
      ['logs', 'p'],
      ['cp', ':/etc/hosts', '-'],
    ]) {
      const { code, stdout, stderr } = await run([...options(url), ...args]);
      expect([args, code, stdout, stderr]).toEqual([
        args,
        1,
        '',
        expect.stringContaining('answered with text/html'),
      ]);
    }
  });

  it('is not followed where it leads elsewhere, and takes no token along', async () => {
    const tokens: unknown[] = [];
    const elsewhere = await served(({ headers }, response) => {
      tokens.push(headers.authorization);
      response.end();
    });
    const url = await served((_, response) => void response.writeHead(307, { location: elsewhere }).end());
    for (const args of [
      ['ps'],
      ['run', '-t', '--', 'sh'],
      ['watch', '/tmp'],
      ['cat', '/a'],
      ['sandbox', 'list'],
    ]) {
      const { code, stderr } = await run([...options(url), ...args]);
      expect([args, code]).toEqual([args, args[0] === 'run' ? 125 : 1]);
      expect(stderr).toBe(`sandboxctl: ${url} answered 307 and is not a sandbox-manager\n`);
    }
    expect(tokens).toEqual([]);
  });

  it('is one line where a frame of a watch makes no sense', async () => {
    for (const frame of ['{', 'null', '7', '{"type":"error"}']) {
      const server = createServer();
      new WebSocketServer({ server }).on('connection', (socket) => socket.send(frame));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const { code, stderr } = await run([...options(url), 'watch', '/tmp']);
      expect([frame, code, stderr]).toEqual([frame, 1, expect.stringMatching(ONE_LINE)]);
    }
  });
});

describe('a manager behind TLS', () => {
  it('is believed only where its certificate is, and is reached without the proxies of the environment', async () => {
    const { key, cert } = selfSigned('DNS:localhost,IP:127.0.0.1');
    const ca = join(scratchFolder(), 'ca.pem');
    writeFileSync(ca, cert);
    let asked = 0;
    const server = createTlsServer({ key, cert }, (request, response) => {
      asked += 1;
      expect(request.headers.authorization).toBe('Bearer a-token');
      succeed(response, 200, { processes: [] });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const proxies = {
      HTTPS_PROXY: 'http://127.0.0.1:1',
      https_proxy: 'http://127.0.0.1:1',
      ALL_PROXY: 'http://127.0.0.1:1',
    };
    expect(await run([...options(url), 'ps'], proxies)).toEqual({
      code: 3,
      stdout: '',
      stderr: `sandboxctl: cannot reach the manager at ${url}: self-signed certificate; NODE_EXTRA_CA_CERTS names a file with certificate authorities to trust\n`,
    });
    expect(asked).toBe(0);
    const trusting = { ...proxies, NODE_EXTRA_CA_CERTS: ca };
    expect(await run([...options(url), 'ps'], trusting)).toMatchObject({ code: 0, stderr: 'no processes\n' });
  });
});
