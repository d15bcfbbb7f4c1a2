import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VARIABLES_MAX } from '../../src/contract/defaults.ts';
import { Environment } from '../../src/daemon/environment.ts';
import { startConsumer } from '../support/consumer.ts';
import { startSandboxd } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const SECRET = 'a-secret-variable';

function stateDir(): string {
  const state_dir = join(scratchFolder(), 'state');
  mkdirSync(state_dir, { mode: 0o700 });
  return state_dir;
}

it('what a shell that started the daemon has noted of itself is not passed on', () => {
  const plain = { PWD: '/a', OLDPWD: '/b', _: '/usr/bin/node', PATH: '/bin' };
  expect(new Environment(join(stateDir(), 'environment.json'), plain).current()).toEqual({ PATH: '/bin' });
});

/** What may be in the place of the file, each put there. */
const DAMAGED: [name: string, put: (path: string) => void][] = [
  ['cut off', (path) => writeFileSync(path, `{"TOKEN":"${SECRET}`)],
  ['empty', (path) => writeFileSync(path, '')],
  ['no object', (path) => writeFileSync(path, '["A=b"]')],
  ['null', (path) => writeFileSync(path, 'null')],
  ['no text', (path) => writeFileSync(path, '{"A":{"b":1}}')],
  ['no name', (path) => writeFileSync(path, '{"A=B":"c"}')],
  ['a directory', (path) => mkdirSync(path)],
  ['a pipe', (path) => void spawnSync('mkfifo', [path])],
  ['endless', (path) => [writeFileSync(path, ''), truncateSync(path, 2 ** 40)]],
];

describe('an environment.json', () => {
  it.each(DAMAGED)(
    'that is %s is set aside and reported, and the daemon starts with its outbox',
    async (_, put) => {
      const consumer = await startConsumer();
      consumer.answer = (__, response) => response.writeHead(503).end();
      const state_dir = stateDir();
      const options = ['--webhook-url', consumer.url, '--sandbox-id', 's'];
      const before = await startSandboxd(options, { state_dir });
      const event_id = await before.publish('{"before":true}');
      await before.end('SIGKILL');
      const path = join(state_dir, 'environment.json');
      put(path);

      const daemon = await startSandboxd(options, { state_dir });
      const aside = join(state_dir, 'environment-damaged.json');
      const told = daemon.log.find(({ msg }) => msg.startsWith('environment.json is damaged'));
      expect(told).toMatchObject({ level: 'error', set_aside: aside });
      expect(daemon.stderr).not.toContain(SECRET);
      expect(await (await fetch(`${daemon.url}/readyz`)).text()).toContain(aside);
      expect((await daemon.call('GET', `/api/v1/webhook/deliveries/${event_id}`)).status).toBe(200);
      const changed = await daemon.call('PUT', '/api/v1/sandbox/env', { env: { MODE: 'new' } });
      expect(changed).toMatchObject({ status: 200, data: { names: ['MODE'] } });
      expect(statSync(path).mode & 0o777).toBe(0o600);
      const again = await startAgain(daemon.end('SIGTERM'), options, state_dir);
      expect(again.log.map(({ msg }) => msg)).not.toContain(told?.msg);
      const ran = await again.call('POST', '/api/v1/processes?wait_ms=10000', { shell: 'echo $MODE' });
      expect(ran.data.output.stdout).toBe('new\n');
    },
  );

  it('that is a symbolic link is not followed', async () => {
    const state_dir = stateDir();
    const elsewhere = join(scratchFolder(), 'elsewhere.json');
    writeFileSync(elsewhere, `{"STOLEN":"${SECRET}"}`);
    chmodSync(elsewhere, 0o644);
    symlinkSync(elsewhere, join(state_dir, 'environment.json'));
    const daemon = await startSandboxd([], { state_dir });
    const ran = await daemon.call('POST', '/api/v1/processes?wait_ms=10000', { shell: 'echo "[$STOLEN]"' });
    expect(ran.data.output.stdout).toBe('[]\n');
    expect(lstatSync(join(state_dir, 'environment-damaged.json')).isSymbolicLink()).toBe(true);
    await daemon.call('PUT', '/api/v1/sandbox/env', { env: { MODE: 'new' } });
    expect(readFileSync(elsewhere, 'utf8')).toBe(`{"STOLEN":"${SECRET}"}`);
    expect(statSync(elsewhere).mode & 0o777).toBe(0o644);
  });

  it('of another sandbox is removed, together with what was set aside', async () => {
    const state_dir = stateDir();
    writeFileSync(join(state_dir, 'environment.json'), `{"TOKEN":"${SECRET}`);
    const first = await startSandboxd(['--sandbox-id', 'parent'], { state_dir });
    await first.end('SIGTERM');
    await startSandboxd(['--sandbox-id', 'child'], { state_dir });
    expect(spawnSync('grep', ['-rqF', SECRET, state_dir]).status).toBe(1);
  });
});

async function startAgain(ended: Promise<unknown>, options: string[], state_dir: string) {
  await ended;
  return startSandboxd(options, { state_dir });
}

it('of more variables, or bytes, than processes are started with is refused, and the one before stays', async () => {
  const state_dir = stateDir();
  const daemon = await startSandboxd([], { state_dir });
  const put = async (env: object) => {
    const response = await fetch(`${daemon.url}/api/v1/sandbox/env`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${daemon.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ env }),
    });
    return { status: response.status, error: ((await response.json()) as { error?: object }).error };
  };
  const many = (prefix: string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, '']));
  expect((await put(many('A', VARIABLES_MAX + 1))).error).toMatchObject({ details: { field: 'env' } });
  expect((await put(many('A', VARIABLES_MAX))).status).toBe(200);
  const { status, error } = await put({ ONE_MORE: '' });
  const message = `env: the sandbox would have more than ${VARIABLES_MAX} variables`;
  expect([status, error]).toMatchObject([400, { code: 'invalid_request', message }]);
  expect((await put({ ...mapped(many('A', 10), null), ONE_MORE: 'x' })).status).toBe(200);
  expect((await put({ LARGE: 'x'.repeat(600_000) })).status).toBe(200);
  expect((await put({ LARGER: 'x'.repeat(600_000) })).error).toMatchObject({ details: { field: 'env' } });
  await daemon.end('SIGKILL');
  const next = await startSandboxd([], { state_dir });
  const { data } = await next.call('PUT', '/api/v1/sandbox/env', { env: {} });
  expect(data.names).toHaveLength(VARIABLES_MAX - 8);
});

function mapped(env: object, value: null): Record<string, null> {
  return Object.fromEntries(Object.keys(env).map((name) => [name, value]));
}
