import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Finding } from '../../../src/ctl/doctor/finding.ts';
import { verify } from '../../../src/webhook/signature.ts';
import { run } from '../../support/ctl/sandboxctl.ts';
import { StandInDaemon, succeed } from '../../support/ctl/stand-in-daemon.ts';
import { startDaemon } from '../../support/daemon/running-daemon.ts';
import { freePort } from '../../support/free-port.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** Missing in some containers. */
const HAS_USER_NAMESPACES =
  spawnSync('unshare', ['-Ur', 'sh', '-c', 'echo 12 > /proc/sys/user/max_inotify_watches']).status === 0;

interface Report {
  code: number | null;
  findings: Finding[];
  levels: Record<string, string>;
  messages: Record<string, string>;
}

async function doctor(args: string[], env: NodeJS.ProcessEnv = {}): Promise<Report> {
  const { code, stdout, stderr } = await run(['--json', 'doctor', ...args], env);
  expect(stderr).toBe('');
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  return {
    code,
    findings,
    levels: Object.fromEntries(findings.map(({ name, level }) => [name, level])),
    messages: Object.fromEntries(findings.map(({ name, message }) => [name, message])),
  };
}

async function serve(status: number, seen: { signature: unknown; body: string }[] = []): Promise<string> {
  const server: Server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    seen.push({ signature: request.headers['x-service-signature'], body });
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

const FREE = ['--url', 'http://127.0.0.1:1'];

describe('sandboxctl doctor', () => {
  it('finds everything in order without a daemon, and has a signed event taken', async () => {
    const folder = scratchFolder();
    const secret_file = join(folder, 'secret');
    writeFileSync(secret_file, 'made for the test\n');
    const seen: { signature: unknown; body: string }[] = [];
    const url = await serve(204, seen);
    const options = ['--state-dir', join(folder, 'state'), '--watch-dir', folder];
    const { levels, messages } = await doctor(
      [
        ...['--url', `http://127.0.0.1:${await freePort()}`, ...options],
        ...['--webhook-url', url, '--webhook-secret-file', secret_file],
      ],
      {},
    );
    expect(levels).toMatchObject({
      port: 'ok',
      state_directory: 'ok',
      sqlite: 'ok',
      inotify: 'ok',
      clock: 'ok',
    });
    expect(levels).toMatchObject({ dns: 'ok', tcp: 'ok', delivery: 'ok' });
    expect(Object.keys(levels)).toEqual(expect.arrayContaining(['persistence', 'fsync', 'init']));
    expect(messages.delivery).toBe('a signed test event was answered 204');
    expect(seen).toHaveLength(1);
    expect(JSON.parse(seen[0]?.body ?? '')).toMatchObject({
      event_type: 'agent.event',
      payload: { test: true },
    });
    expect(verify('made for the test', Buffer.from(seen[0]?.body ?? ''), String(seen[0]?.signature))).toBe(
      true,
    );
  });

  it('has a daemon that runs deliver its test event, and reads what its outbox is written by', async () => {
    const daemon = await startDaemon('--webhook-url', await serve(200));
    const url = `http://127.0.0.1:${daemon.port}`;
    const { levels, messages } = await doctor(['--url', url, '--state-dir', daemon.state_dir]);
    expect(messages.port).toBe(`${daemon.port} is served by a running sandboxd`);
    expect(messages.sqlite).toMatch(/^3\.\d+\.\d+, with a write-ahead log/);
    expect(messages.delivery).toMatch(/^evt_\S+ was delivered by the daemon: 200$/);
    expect(levels).toMatchObject({ port: 'ok', state_directory: 'ok', sqlite: 'ok', delivery: 'ok' });
  });

  it('names the program that holds the port, and exits 2', async () => {
    const holder = new URL(await serve(404));
    const { code, levels, messages } = await doctor(['--url', holder.origin]);
    expect(levels.port).toBe('error');
    expect(messages.port).toContain(`${holder.port} is held by `);
    expect(messages.port).toContain(`(pid ${process.pid})`);
    expect(code).toBe(2);
  });

  it.each([
    ['a receiver that refuses', async () => serve(500), 'delivery', /answered 500/],
    ['nobody at the address', async () => 'http://127.0.0.1:9/', 'tcp', /connection refused/],
    ['a name that does not exist', async () => 'http://no.invalid/', 'dns', /no\.invalid:80/],
    [
      'a receiver without TLS',
      async () => (await serve(204)).replace('http:', 'https:'),
      'tls',
      /127\.0\.0\.1/,
    ],
  ])('tells of %s', async (_, start, name, message) => {
    const { code, levels, messages } = await doctor([...FREE, '--webhook-url', await start()]);
    expect(levels[name]).toBe('error');
    expect(messages[name]).toMatch(message);
    expect(code).toBe(2);
  });

  it('warns where nothing can be delivered, and exits by the worst', async () => {
    const { code, levels, findings } = await doctor([...FREE, '--state-dir', join(scratchFolder(), 'state')]);
    expect(levels.delivery).toBe('warning');
    const ranks = findings.map(({ level }) => ['ok', 'warning', 'error'].indexOf(level));
    expect(code).toBe(Math.max(...ranks));
  });

  it('tells of a state directory in memory', async () => {
    const { levels, messages } = await doctor([...FREE, '--state-dir', '/dev/shm/sandboxd-doctor']);
    expect(levels.persistence).toBe('error');
    expect(messages.persistence).toContain('tmpfs');
  });

  it('tells of a state directory that is none, and of an outbox that is damaged', async () => {
    const folder = scratchFolder();
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect((await doctor([...FREE, '--state-dir', file])).levels.state_directory).toBe('error');
    writeFileSync(join(folder, 'outbox.db'), 'x'.repeat(4096));
    expect((await doctor([...FREE, '--state-dir', folder])).messages.sqlite).toContain('is damaged');
  });

  it.skipIf(!HAS_USER_NAMESPACES)(
    'tells of a tree with more directories than watches, also where a user namespace has the lower limit',
    async () => {
      const tree = scratchFolder();
      for (let i = 0; i < 20; i++) mkdirSync(join(tree, String(i)));
      const limited = 'echo 12 > /proc/sys/user/max_inotify_watches && exec "$0" "$@"';
      const doctor = [
        process.execPath,
        'bin/sandboxctl.ts',
        '--json',
        'doctor',
        ...FREE,
        '--watch-dir',
        tree,
      ];
      const { stdout } = spawnSync('unshare', ['-Ur', 'sh', '-c', limited, ...doctor], { encoding: 'utf8' });
      const { findings } = JSON.parse(stdout) as { findings: Finding[] };
      const found = findings.find(({ name }) => name === 'inotify');
      expect(found?.level).toBe('error');
      expect(found?.message).toMatch(
        /^21 directories in .*, 12 watches are allowed \(user.max_inotify_watches\): .*/,
      );
      expect(found?.message).toContain('sysctl -w user.max_inotify_watches=42');
    },
  );

  it('tells why a daemon that runs may miss changes', async () => {
    const daemon = new StandInDaemon();
    const url = await daemon.start();
    onTestFinished(() => daemon.stop());
    const watcher = { watch_dir: '/nowhere', degraded: 'no watches are left for 3 directories' };
    daemon.on('GET /sandbox', (_, response) => succeed(response, 200, { watcher }));
    const { levels, messages } = await doctor(['--url', url]);
    expect([levels.watch, messages.watch]).toEqual(['warning', watcher.degraded]);
  });

  it('prints one line for each finding to a person', async () => {
    const { stdout, code } = await run(['doctor', ...FREE, '--state-dir', join(scratchFolder(), 'state')]);
    const lines = stdout.trimEnd().split('\n');
    for (const line of lines) expect(line).toMatch(/^(ok|warning|error) +[a-z_]+ +\S/);
    expect(lines.length).toBeGreaterThanOrEqual(8);
    expect(code).not.toBe(null);
  });

  it('refuses a URL that is none', async () => {
    const { code, stderr } = await run(['doctor', ...FREE, '--webhook-url', 'ftp://x/']);
    expect(code).toBe(2);
    expect(stderr).toContain('--webhook-url must be http');
  });
});
