import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { buildImage } from '../../../.build/image/build.ts';
import { verify } from '../../../src/webhook/signature.ts';
import { minbase, TINI } from '../../support/build/minbase.ts';
import { eventually } from '../../support/eventually.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const SECRET = 'made for the test';
const root = minbase();
const folder = mkdtempSync(join(tmpdir(), 'sandboxd-root-'));
const tree = join(folder, 'image');

beforeAll(async () => {
  if (root) await buildImage(tree);
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Received {
  signature: unknown;
  body: string;
}

/** A receiver outside, and the daemon inside, as PID 1 or behind an init. */
class Sandbox {
  readonly received: Received[] = [];
  readonly state = mkdtempSync(join(folder, 'state-'));
  readonly #child: ChildProcess;
  readonly ended: Promise<unknown[]>;
  log = '';

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.ended = once(child, 'exit');
  }

  static async start(user: string[], command: string[], options: string[] = []): Promise<Sandbox> {
    const state = mkdtempSync(join(folder, 'state-'));
    mkdirSync(join(state, 'kept'), { mode: 0o700 });
    writeFileSync(join(state, 'secret'), SECRET, { mode: 0o600 });
    const received: Received[] = [];
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      received.push({ signature: request.headers['x-service-signature'], body });
      response.writeHead(204).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close().closeAllConnections());
    const webhook = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const child = spawn(
      'bwrap',
      [
        ...inside(state),
        ...user,
        '--unshare-pid',
        '--as-pid-1',
        '--',
        ...command,
        ...[
          '--state-dir',
          '/state/kept',
          '--port',
          '0',
          '--host',
          '127.0.0.1',
          '--shutdown-grace-ms',
          '2000',
        ],
        ...[
          '--webhook-url',
          webhook,
          '--webhook-secret-file',
          '/state/secret',
          '--sandbox-id',
          'sbx_root',
          ...options,
        ],
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    const sandbox = new Sandbox(child);
    Object.assign(sandbox, { received, state });
    child.stderr?.on('data', (text: Buffer) => {
      sandbox.log += text;
    });
    onTestFinished(() => {
      // Where nothing else is PID 1, what runs inside outlives the one that set it up.
      if (child.exitCode === null && child.signalCode === null) sandbox.signal('SIGKILL');
      child.kill('SIGKILL');
    });
    await sandbox.until(() => sandbox.log.includes('"ready"') || child.exitCode !== null);
    return sandbox;
  }

  until(holds: () => boolean): Promise<void> {
    return eventually(() => expect(holds(), this.log).toBe(true), { timeout: 60_000, interval: 20 });
  }

  // biome-ignore lint/suspicious/noExplicitAny: whatever the daemon answers.
  async ask(method: string, path: string, body?: object): Promise<{ status: number; data: any }> {
    const url = /"url":"([^"]+)"/.exec(this.log)?.[1];
    const token = readFileSync(join(this.state, 'kept/control-token'), 'utf8').trim();
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const { data } = (await response.json()) as { data: unknown };
    return { status: response.status, data };
  }

  async run(request: object): Promise<{ exit_code: number; output: { stdout: string; stderr: string } }> {
    return (await this.ask('POST', '/processes?wait_ms=15000', request)).data;
  }

  types(): string[] {
    return this.received.map(({ body }) => JSON.parse(body).event_type);
  }

  /** Sends a signal to PID 1 inside. */
  signal(signal: NodeJS.Signals): void {
    const [inner] = readFileSync(`/proc/${this.#child.pid}/task/${this.#child.pid}/children`, 'utf8').split(
      ' ',
    );
    process.kill(Number(inner || this.#child.pid), signal);
  }
}

/** The root, read only, with the tree copied onto it and a state of its own. */
function inside(state: string): string[] {
  const library = '/usr/local/lib/sandboxd';
  const commands = ['/usr/local/bin/sandboxd', '/usr/local/bin/sandboxctl'];
  return [
    ...['--ro-bind', root ?? '/', '/', '--ro-bind', join(tree, library), library, '--ro-bind', TINI, TINI],
    ...commands.flatMap((path) => ['--ro-bind', join(tree, path), path]),
    ...[
      '--bind',
      state,
      '/state',
      '--proc',
      '/proc',
      '--dev',
      '/dev',
      '--tmpfs',
      '/tmp',
      '--die-with-parent',
    ],
    ...['--clearenv', '--setenv', 'PATH', '/usr/local/bin:/usr/bin:/bin'],
  ];
}

const USERS: [string, string[]][] = [
  ['root', []],
  ['an ordinary user', ['--unshare-user', '--uid', '1000', '--gid', '1000']],
];

describe.skipIf(root === null)('in an empty root with glibc and no Node', () => {
  it('there is no Node', () => {
    expect(existsSync(join(root ?? '', 'usr/bin/node'))).toBe(false);
  });

  it.each(USERS)('does its whole work behind tini as PID 1, as %s', async (_, user) => {
    const sandbox = await Sandbox.start(user, [TINI, '--', 'sandboxd']);
    expect(sandbox.log).not.toContain('PID 1');
    expect((await sandbox.ask('POST', '/webhook/publish', { payload: { n: 1 } })).status).toBe(202);
    await sandbox.until(() => sandbox.types().includes('agent.event'));
    expect(sandbox.types()[0]).toBe('sandbox.ready');
    for (const { body, signature } of sandbox.received)
      expect(verify(SECRET, Buffer.from(body), signature)).toBe(true);

    const id = await sandbox.run({ shell: 'id -u; command -v node' });
    expect(id.output.stdout).toBe(user.length > 0 ? '1000\n' : '0\n');
    const terminal = await sandbox.run({
      command: ['/bin/sh', '-c', 'test -t 1 && stty size'],
      pty: { cols: 100, rows: 30 },
    });
    expect(terminal.output.stdout).toBe('30 100\r\n');
    const ctl = await sandbox.run({ shell: 'sandboxctl --state-dir /state/kept status' });
    expect(ctl.output.stdout).toMatch(/^sandbox +sbx_root/);

    sandbox.signal('SIGTERM');
    expect(await sandbox.ended).toEqual([0, null]);
    expect(sandbox.types().at(-1)).toBe('sandbox.killed');
  });

  it('leaves no orphan behind that nobody reaps, behind tini', async () => {
    const sandbox = await Sandbox.start([], [TINI, '--', 'sandboxd']);
    await sandbox.run({ shell: 'for i in 1 2 3 4 5; do (setsid sleep 0.2 &) ; done' });
    const states = 'for s in /proc/[0-9]*/stat; do read -r pid name state rest <"$s" && echo "$state"; done';
    await eventually(
      async () =>
        expect((await sandbox.run({ shell: `sleep 0.3; ${states}` })).output.stdout).not.toContain('Z'),
      { timeout: 60_000 },
    );
  });

  it('says in the log that orphans are not reaped where it is PID 1 itself', async () => {
    const sandbox = await Sandbox.start([], ['/usr/local/bin/sandboxd']);
    await sandbox.until(() => sandbox.log.includes('PID 1'));
    expect(sandbox.log).toMatch(/"level":"warn".*running as PID 1: .*run an init such as tini as PID 1/);
  });

  it('says in the log that a state directory in memory does not persist', async () => {
    const sandbox = await Sandbox.start([], [TINI, '--', 'sandboxd'], ['--state-dir', '/tmp/state']);
    await sandbox.until(() => sandbox.log.includes('in memory'));
    expect(sandbox.log).toMatch(
      /"level":"warn".*"state_dir":"\/tmp\/state".*a reboot loses acknowledged events/,
    );
  });

  it('is in order to its own doctor', async () => {
    const sandbox = await Sandbox.start([], [TINI, '--', 'sandboxd']);
    const { exit_code, output } = await sandbox.run({
      shell: 'sandboxctl --state-dir /state/kept --json doctor',
    });
    const { findings } = JSON.parse(output.stdout) as { findings: { name: string; level: string }[] };
    const levels = Object.fromEntries(findings.map(({ name, level }) => [name, level]));
    expect(levels).toMatchObject({
      port: 'ok',
      state_directory: 'ok',
      sqlite: 'ok',
      init: 'ok',
      delivery: 'ok',
    });
    expect(exit_code).toBeLessThan(2);
  });

  it('says in one line that the root is read only, and exits 1', () => {
    const state = mkdtempSync(join(folder, 'state-'));
    const { status, stderr } = spawnSync('bwrap', [...inside(state), '--', 'sandboxd', '--port', '0'], {
      encoding: 'utf8',
    });
    const lines = stderr.trimEnd().split('\n');
    expect(lines.at(-1)).toMatch(/^sandboxd: state directory \/var\/lib\/sandboxd: .*read-only file system/i);
    expect(stderr).not.toContain('    at ');
    expect(status).toBe(1);
  });
});
