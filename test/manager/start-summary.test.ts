import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { managerConfig } from '../../src/manager/config/config.ts';
import { type StartFacts, startSummary } from '../../src/manager/start-summary.ts';
import { eventually } from '../support/eventually.ts';
import { MANAGER } from '../support/manager-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const FACTS = {
  url: 'http://127.0.0.1:8080',
  program: '/x/sandbox-manager.cjs',
  has_tokens: false,
} as const;

const RUNTIME: StartFacts['runtime'] = {
  summary: 'sandboxes are isolated',
  runs_sandboxes: true,
  node: null,
  limitations: () => ['system calls of sandboxes are not filtered'],
  networks: {
    state: () => ({ mode: 'host-unmetered', reason: 'it is not run by root', block_all: null }),
  },
};

/** Starts a manager in `folder`; resolves once it listens. */
async function started(folder: string) {
  const child = spawn(MANAGER, ['--runtime', 'none', '--listen', '127.0.0.1:0'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  }
  await eventually(() => expect(said.stderr).toContain('"msg":"listening"'), { timeout: 60_000 });
  /** Resolves once it has ended and all it has written is read. */
  const end = async () => {
    const closed = once(child, 'close');
    child.kill('SIGTERM');
    await closed;
  };
  return { said, end };
}

it('the first start alone prints commands that lead to a sandbox, as they are, in any folder', async () => {
  const folder = join(scratchFolder(), "it's here");
  mkdirSync(folder);
  const { said, end } = await started(folder);
  await eventually(() => expect(said.stdout).toContain('curl'));
  const text = said.stdout;
  expect(text).toMatch(/database {2}sqlite:.*sandbox-manager\.db\n {2}key file {2}.*sandbox-manager\.key/);
  const commands = text.split('\n').filter((line) => /^ {2}(TOKEN=|curl )/.test(line));
  expect(commands).toHaveLength(2);
  const claimed = execFileSync('sh', ['-ec', commands.join('\n')], { cwd: '/', encoding: 'utf8' });
  expect(JSON.parse(claimed)).toMatchObject({ success: true, data: { status: 'running' } });
  await end();
  const again = await started(folder);
  await again.end();
  expect(again.said.stdout).toBe('');
});

it('no password is printed, and the network, what is missing and quotas are', () => {
  const default_team_quotas = [
    { dimension: 'active_sandboxes', limit_value: 7 },
    { dimension: 'sandbox_claims', limit_value: 5, interval_ms: 1000, burst_value: 9 },
  ];
  const given = { database: 'postgres://me:hidden@db/manager' };
  const config = managerConfig(given, {}, { default_team_quotas });
  const text = startSummary({ config, ...FACTS, runtime: RUNTIME });
  expect(text).not.toContain('hidden');
  for (const said of [
    'postgres://db/manager',
    'local: sandboxes are isolated',
    'host-unmetered: it is not run by root',
    'system calls of sandboxes are not filtered',
    'active_sandboxes 7; sandbox_claims 5 every 1000 ms, at most 9 at once',
  ]) {
    expect(text).toContain(said);
  }
});
