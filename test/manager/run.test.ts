import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { failureOf } from '../support/manager/failing-command.ts';
import { firstToken, ManagerProgram } from '../support/manager-program.ts';
import { scratchFolder } from '../support/scratch.ts';

describe('sandbox-manager', () => {
  it.each([
    [['--colour', 'red'], '--colour'],
    [['--runtime', 'docker'], '--runtime must be one of'],
    [['--listen', 'everywhere'], '--listen must be'],
    [['--replicas', '2'], '--redis is required'],
    [['--config', '/nowhere.yaml'], '--config /nowhere.yaml'],
    [['surplus'], 'surplus'],
  ])('refuses %j with exit 2 and one line', async (args, line) => {
    const { code, stderr } = await failureOf(...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^sandbox-manager: [^\n]+\n$/);
    expect(stderr).toContain(line);
  });

  it('refuses an unknown key of the config file', async () => {
    const path = join(scratchFolder(), 'config.yaml');
    writeFileSync(path, 'runtime: none\nnode_memroy: 8Gi\n');
    const { code, stderr } = await failureOf('--config', path);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'sandbox-manager: --config: unknown key node_memroy; did you mean node_memory?\n',
    });
  });

  it('reads its options from the environment, the command line first', async () => {
    const folder = scratchFolder();
    vi.stubEnv('SANDBOX_MANAGER_DATABASE', `sqlite:${join(folder, 'environment.db')}`);
    vi.stubEnv('SANDBOX_MANAGER_REGION', '');
    onTestFinished(() => void vi.unstubAllEnvs());
    const create = ['token', 'create', '--team', 't', '--scope', 'admin'];
    expect((await failureOf(...create)).stderr).toContain(`${join(folder, 'environment.db')} is not there`);
    const other = ['--database', `sqlite:${join(folder, 'line.db')}`];
    expect((await failureOf(...create, ...other)).stderr).toContain(
      `${join(folder, 'line.db')} is not there`,
    );
    expect(readdirSync(folder)).toEqual([]);
    vi.stubEnv('SANDBOX_MANAGER_METERING', 'maybe');
    expect((await failureOf()).stderr).toBe('sandbox-manager: --metering must be on or off\n');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('ends with exit 1 and one line if its address is in use', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const folder = scratchFolder();
    const given = ['--database', `sqlite:${join(folder, 'm.db')}`, '--secret-key-file', join(folder, 'key')];
    const { code, stderr } = await failureOf(...given, '--runtime', 'none', '--listen', `127.0.0.1:${port}`);
    expect(code).toBe(1);
    expect(stderr).toContain(`--listen 127.0.0.1:${port} is in use by another program\n`);
  });

  it('serves, finds its sandboxes after a restart, and ends on SIGTERM with exit 0', async () => {
    const folder = scratchFolder();
    const config = join(folder, 'config.yaml');
    const database = `sqlite:${join(folder, 'manager.db')}`;
    writeFileSync(
      config,
      [
        ...['listen: 127.0.0.1:0', 'runtime: none', `database: ${database}`],
        `secret_key_file: ${join(folder, 'key')}`,
      ].join('\n'),
    );
    const token = await firstToken(database, 'sandboxes:write');
    const headers = { authorization: `Bearer ${token}` };
    const first = await ManagerProgram.start(['--config', config]);
    onTestFinished(() => void first.child.kill('SIGKILL'));
    expect(existsSync(join(folder, 'key'))).toBe(true);
    const claimed = await fetch(`${first.url}/api/v1/sandboxes`, { method: 'POST', headers });
    expect(claimed.status).toBe(201);
    await first.end('SIGTERM');
    expect(first.child.exitCode).toBe(0);
    const second = await ManagerProgram.start(['--config', config]);
    onTestFinished(() => void second.child.kill('SIGKILL'));
    const { data } = (await (await fetch(`${second.url}/api/v1/sandboxes`, { headers })).json()) as {
      data: { count: number };
    };
    expect(data.count).toBe(1);
    expect(first.log + second.log).not.toContain(token);
    await second.end('SIGINT');
    expect(second.child.exitCode).toBe(0);
  });
});
