import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { atTerminal } from '../support/ctl/typed-terminal.ts';
import { eventually } from '../support/eventually.ts';
import { MANAGER, ManagerProgram, runManagerCommand } from '../support/manager-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const SANDBOXCTL = join(dirname(MANAGER), 'sandboxctl.cjs');

/** A built manager with isolated sandboxes, and a profile that names it. */
async function start() {
  const folder = scratchFolder();
  const database = ['--database', `sqlite:${join(folder, 'manager.db')}`];
  const manager = await ManagerProgram.start([
    ...['--listen', '127.0.0.1:0', '--runtime', 'local', '--data-dir', join(folder, 'data'), ...database],
    ...['--secret-key-file', join(folder, 'key'), '--allow-webhook-cidr', '127.0.0.0/8'],
  ]);
  onTestFinished(() => manager.end('SIGTERM'));
  const scopes = ['--scope', 'sandboxes:write'];
  const token = await runManagerCommand('token', 'create', '--team', 'team_1', ...scopes, ...database);
  mkdirSync(join(folder, 'sandboxctl'));
  writeFileSync(join(folder, 'sandboxctl/token'), token);
  writeFileSync(
    join(folder, 'sandboxctl/config.yaml'),
    `default_profile: here\nprofiles:\n  here:\n    manager: ${manager.url}\n    token_file: token\n`,
  );
  return { folder, env: { PATH: process.env.PATH, XDG_CONFIG_HOME: folder } as NodeJS.ProcessEnv };
}

/** Runs the built program to its end. */
async function run(env: NodeJS.ProcessEnv, args: string[], stdin = '') {
  const child = spawn(SANDBOXCTL, args, { env });
  child.stdin.on('error', () => {}).end(stdin);
  const code = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await code, stdout, stderr };
}

it('a claimed sandbox is worked with through its manager as one that is here', async () => {
  const { folder, env: outer } = await start();
  const consumer = await startConsumer();
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'a key made for this test');
  const webhook = ['--webhook-url', consumer.url, '--webhook-secret-file', secret];
  const id = (await run(outer, ['sandbox', 'claim', ...webhook])).stdout.trim();
  onTestFinished(async () => {
    await run(outer, ['sandbox', 'delete', id]);
    await eventually(
      async () => expect(JSON.parse((await run(outer, ['sandbox', 'list', '--json'])).stdout).count).toBe(0),
      { timeout: 60_000, interval: 100 },
    );
  });
  // Its beginning is enough.
  const env = { ...outer, SANDBOXCTL_SANDBOX: id.slice('sbx_'.length, -8) };
  const done = async (args: string[], stdin?: string) => {
    const { code, stdout, stderr } = await run(env, args, stdin);
    expect([args, code, stderr]).toEqual([args, 0, stderr]);
    return stdout;
  };

  const failed = await run(env, ['run', '-i', '--', 'sh', '-c', 'cat; echo oops >&2; exit 3'], 'typed\n');
  expect(failed).toEqual({ code: 3, stdout: 'typed\n', stderr: 'oops\n' });
  expect(await run(env, ['run', '--', 'no-such-program'])).toMatchObject({ code: 127 });

  const bytes = randomBytes(3_000_000);
  mkdirSync(join(folder, 'tree/below'), { recursive: true });
  writeFileSync(join(folder, 'tree/below/file'), bytes);
  await done(['cp', '-r', join(folder, 'tree'), ':/root/tree']);
  await done(['cp', '-r', ':/root/tree', join(folder, 'back')]);
  expect(readFileSync(join(folder, 'back/below/file')).equals(bytes)).toBe(true);
  await done(['cp', '-', ':/root/note'], 'a note');
  await done(['mv', '/root/note', '/root/tree']);
  expect(await done(['cat', '/root/tree/note'])).toBe('a note');
  expect(await done(['ls', '/root/tree'])).toBe('below\nnote\n');

  const watching = spawn(SANDBOXCTL, ['watch', '/root/tree'], { env });
  let seen = '';
  for (const stream of [watching.stdout, watching.stderr]) stream.on('data', (chunk) => (seen += chunk));
  await eventually(() => expect(seen).toContain('watching /root/tree'), { timeout: 60_000, interval: 20 });
  await done(['rm', '/root/tree/note']);
  await eventually(() => expect(seen).toContain('remove /root/tree/note'), { timeout: 60_000, interval: 20 });
  watching.kill('SIGINT');

  const sleeper = spawn(SANDBOXCTL, ['run', '--name', 'sleeper', '--', 'sleep', '600'], {
    env,
    stdio: 'ignore',
  });
  const ended = new Promise((resolve) => sleeper.once('close', resolve));
  const process_id = await eventually(
    async () => {
      const { processes } = JSON.parse(await done(['ps', '--json']));
      const found = processes.find(
        (each: { name: string; pid: number }) => each.name === 'sleeper' && each.pid,
      );
      if (!found) throw new Error('it does not run yet');
      return found.process_id as string;
    },
    { timeout: 60_000, interval: 50 },
  );
  await done(['signal', process_id.slice(0, -3), 'SIGTERM']);
  expect(await ended).toBe(143);
  expect(await done(['logs', process_id])).toBe('');

  await eventually(
    async () => expect(await done(['deliveries', '--state', 'delivered'])).toContain('sandbox.ready'),
    {
      timeout: 60_000,
      interval: 100,
    },
  );
  const { event_id } = JSON.parse(await done(['deliveries', '--event-type', 'sandbox.ready', '--json']))
    .deliveries[0];
  expect(await done(['replay', event_id.slice(0, -4)])).toMatch(
    new RegExp(`^${event_id} is (pending|delivered)`),
  );
  await consumer.arrival('sandbox.ready', 2);
  expect(await done(['events'])).toMatch(/sandbox\.ready .*\n(.*\n)*.*process\.started +sleeper/);

  await done(['sandbox', 'pause']);
  expect(await run(env, ['run', '--', 'true'])).toMatchObject({ code: 125 });
  expect(await done(['ls', '/root/tree'])).toBe('below\n');
}, 180_000);

it('a terminal in a claimed sandbox shows keys and sizes, and ends with its code', async () => {
  const { env: outer } = await start();
  const id = (await run(outer, ['sandbox', 'claim', '--cpu', '1'])).stdout.trim();
  onTestFinished(async () => {
    await run(outer, ['sandbox', 'delete', id]);
  });
  const shell = ['env', 'PS1=ready> ', 'sh', '-i'];
  const terminal = atTerminal(SANDBOXCTL, ['--sandbox', id, 'run', '-it', '--', ...shell], outer);
  await terminal.shows(/ready> $/);
  terminal.type('stty size\r');
  await terminal.shows(/24 80\r+\n/);
  terminal.resize(100, 30);
  await eventually(
    async () => {
      terminal.type('stty size\r');
      await terminal.shows(/30 100\r+\n/);
    },
    { timeout: 60_000, interval: 100 },
  );
  terminal.type('sleep 600\r');
  await terminal.shows(/sleep 600\r+\n$/);
  terminal.type('\x03');
  await terminal.shows(/\^C\r+\nready> $/);
  terminal.type('exit 7\r');
  expect(await terminal.ended).toBe(7);
}, 120_000);
