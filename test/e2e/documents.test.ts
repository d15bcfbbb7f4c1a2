import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { networkProblem } from '../../src/network/problem.ts';
import { READERS, Reader, unreachable } from '../support/documents/reader.ts';
import { type ShellBlock, shellBlocksIn } from '../support/documents/shell-blocks.ts';

const README = shellBlocksIn('README.md');
const DAEMON = shellBlocksIn('src/daemon/README.md');
const MANAGER = shellBlocksIn('src/manager/README.md');

/** The block that begins so, which is typed as it is printed. */
function blockOf(blocks: ShellBlock[], start: string): ShellBlock {
  const found = blocks.find(({ code }) => code.startsWith(start));
  if (!found) throw new Error(`no block begins with ${start}`);
  return found;
}

const START = blockOf(README, 'npm ci && npm start');
const SANDBOX = blockOf(README, 'npm ci && npm run build');
const PUBLISH = blockOf(README, 'curl --retry 9 --retry-connrefused localhost');
const PROCESS = blockOf(DAEMON, 'curl "localhost:49983/api/v1/processes');
const MANY = blockOf(README, 'npm ci && npm run manager');
const CLAIM = blockOf(README, 'export PATH="$PWD/node_modules/.bin:$PATH" SANDBOXCTL_MANAGER');
const PORT = blockOf(README, 'sandboxctl run -- sh -c');
const LIFE = blockOf(MANAGER, 'TOKEN=$(cat');
const PROFILE = blockOf(DAEMON, 'mkdir -p ~/.config');
const PRUNE = blockOf(MANAGER, '# prints how many');

/** Blocks that are tried elsewhere, with where. */
const ELSEWHERE: [start: string, where: string][] = [
  ['npm ci && npm test', '.ci/run'],
  ['curl --unix-socket', 'test/daemon/control-token.test.ts'],
  ['export SANDBOX_MANAGER_DATABASE', 'test/manager/replicas.test.ts'],
  ['sqlite3 sandbox-manager.db', 'test/manager/backup.test.ts'],
  ['kubectl apply -k', 'test/deploy/manager-in-cluster.test.ts'],
];

const SHELLS = ['bash', 'dash'].filter((shell) => {
  try {
    execFileSync(shell, ['-c', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
});
const without_networks = await networkProblem();

describe('the blocks of README and manuals', () => {
  it('are all typed here, or tried elsewhere', () => {
    const typed = new Set([START, SANDBOX, PUBLISH, PROCESS, MANY, CLAIM, PORT, LIFE, PROFILE, PRUNE]);
    const same = blockOf(MANAGER, 'npm ci && npm run manager');
    const others = [...README, ...DAEMON, ...MANAGER].filter((block) => !typed.has(block) && block !== same);
    const tried = others.map(({ code }) => ELSEWHERE.find(([start]) => code.startsWith(start))?.[0] ?? code);
    expect(tried.toSorted()).toEqual(ELSEWHERE.map(([start]) => start).toSorted());
    for (const [, where] of ELSEWHERE)
      expect(statSync(join(import.meta.dirname, '../..', where)).isFile()).toBe(true);
  });

  it('that need root say so', () => {
    expect(PORT.before).toMatch(/needs root/);
  });
});

describe.each(READERS)('typed by %s', (name) => {
  const why = unreachable(name);
  const title = why === null ? 'in %s' : `in %s (skipped: ${why})`;
  describe.skipIf(why !== null).each(SHELLS)(title, (shell) => {
    it('the demonstration runs, and ends with Ctrl-C', async () => {
      const demo = new Reader(name, shell).type(START.code);
      await demo.until('Ctrl-C ends');
      await demo.end('SIGINT');
    });

    it('a sandbox reports what its program does, and takes an event', async () => {
      const delivered =
        'until sandboxctl deliveries --state delivered | grep agent.event; do sleep 0.2; done';
      const script = [SANDBOX.code, PUBLISH.code, PROCESS.code, delivered, 'echo all done; wait'].join('\n');
      const typed = new Reader(name, shell).type(script);
      await typed.until('all done');
      expect(typed.output).toMatch(/"state":"exited",.*"exit_code":0/);
      expect(typed.output).toMatch(/file\.modified .*result/);
      await typed.end();
    });

    it('a manager offers its token, and a sandbox lives', async (context) => {
      const reader = new Reader(name, shell);
      const manager = reader.type(MANY.code);
      await manager.until('"msg":"listening"');
      expect(manager.output).toContain('http://127.0.0.1:8080/console/');
      const { mode } = statSync(join(reader.checkout, '.state/manager/token'));
      expect(mode & 0o777).toBe(0o600);
      if (manager.output.includes('--runtime none')) {
        await manager.end();
        context.skip('sandboxes cannot be isolated here');
      }
      const has_networks = name === 'root' && without_networks === null;
      const rest = `for each in $(api GET /sandboxes | grep -o '"id":"sbx_[^"]*"' | cut -d'"' -f4); do api DELETE /sandboxes/$each > /dev/null; done
until [ -z "$(ls .state/manager/data | grep sbx_)" ]; do sleep 0.2; done`;
      const blocks = [CLAIM, ...(has_networks ? [PORT] : []), PROFILE, LIFE, PRUNE].map(({ code }) => code);
      const typed = reader.type([...blocks, rest, 'echo all done'].join('\n'));
      await typed.until('all done');
      expect(typed.output).toContain('Linux');
      expect(typed.output).toContain('"stdout":"hello\\n"');
      expect(typed.output).toContain('runtime');
      expect(typed.output).not.toContain('"success":false');
      if (has_networks) expect(typed.output).toContain('Directory listing');
      await manager.end();
    });
  });
});
