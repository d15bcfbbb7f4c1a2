import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isMemoryPrivate } from '../../src/daemon/run.ts';
import { IS_ROOT } from '../support/rights.ts';
import { SANDBOXD, startProgram } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const DIST = dirname(SANDBOXD);
const SECRET = 'canary-of-the-start';
const NOBODY = 65_534;

describe.runIf(IS_ROOT)('a daemon that is not root', () => {
  /** A place that any user may read, with a Node of this mode. */
  function installed(node_mode: number): { argv: string[]; state_dir: string } {
    const folder = scratchFolder();
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'state'));
    chownSync(join(folder, 'state'), NOBODY, NOBODY);
    chmodSync(join(folder, 'state'), 0o700);
    mkdirSync(join(folder, 'dist'));
    for (const name of readdirSync(DIST).filter((each) => each.endsWith('.cjs')))
      copyFileSync(join(DIST, name), join(folder, 'dist', name));
    symlinkSync(join(DIST, '../node_modules'), join(folder, 'node_modules'));
    copyFileSync(process.execPath, join(folder, 'node'));
    chmodSync(join(folder, 'node'), node_mode);
    const state_dir = join(folder, 'state');
    return {
      argv: [
        join(folder, 'node'),
        join(folder, 'dist/sandboxd.cjs'),
        '--port',
        '0',
        '--state-dir',
        state_dir,
      ],
      state_dir,
    };
  }

  /** Whether a process of the same user may open a file of the daemon's in /proc. */
  async function mayRead(pid: number, name: string): Promise<boolean> {
    const script = `require('node:fs').openSync('/proc/${pid}/${name}', 'r')`;
    const child = spawn(process.execPath, ['-e', script], { stdio: 'ignore', uid: NOBODY, gid: NOBODY });
    const [code] = await once(child, 'exit');
    return code === 0;
  }

  const MEMORY =
    'supervised processes can read the webhook secret from memory: use the image tree, --process-user, or run as root';

  it('has private memory if its Node can be executed but not read', async () => {
    const { argv, state_dir } = installed(0o111);
    const secret = ['--webhook-url', 'http://127.0.0.1:9/', '--webhook-secret', SECRET, '--sandbox-id', 's'];
    const daemon = startProgram([...argv, ...secret], { uid: NOBODY, state_dir });
    await daemon.logged('ready');
    expect(daemon.log.map(({ msg }) => msg)).not.toContain(MEMORY);
    for (const name of ['mem', 'environ', 'maps']) expect(await mayRead(daemon.pid, name)).toBe(false);
    const command_line = readFileSync(`/proc/${daemon.pid}/cmdline`, 'utf8');
    expect(command_line).not.toContain(SECRET);
    expect(command_line).toContain('--sandbox-id');
    expect(await daemon.publish('{}')).toMatch(/^evt_/);
  });

  it('warns that its memory can be read if its Node can be', async () => {
    const { argv, state_dir } = installed(0o755);
    const daemon = startProgram([...argv, '--webhook-secret', SECRET], { uid: NOBODY, state_dir });
    await daemon.logged(MEMORY);
    expect(await mayRead(daemon.pid, 'mem')).toBe(true);
    expect(readFileSync(`/proc/${daemon.pid}/cmdline`, 'utf8')).not.toContain(SECRET);
  });
});
describe('the memory of this process', () => {
  it('is private if the program cannot be read', () => {
    expect(isMemoryPrivate(join(scratchFolder(), 'missing'))).toBe(true);
  });

  it.runIf(IS_ROOT)('is private as root, who may change the group', () => {
    expect(isMemoryPrivate()).toBe(true);
  });
});
