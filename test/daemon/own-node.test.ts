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
  writeFileSync,
} from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { launcher } from '../../.build/image/launcher.ts';
import { SANDBOXD, SandboxdProgram } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const DIST = dirname(SANDBOXD);
const NODE_FOLDER = dirname(process.execPath);
const SECRET = 'canary-of-the-start';
const NOBODY = 65_534;
const SIGUSR1_BIT = 1n << 9n;
const MAIN_COMMAND = ['--', 'sh', '-c', 'echo "[$NODE_OPTIONS]"; env | grep ^SANDBOXD_CHILD; sleep 60'];

interface Given {
  env?: Record<string, string>;
  uid?: number;
  state_dir?: string;
}

/** Starts `argv` as a user would, without Node in between. */
function start(argv: string[], { env = {}, uid, state_dir = join(scratchFolder(), 'state') }: Given = {}) {
  const [program = '', ...args] = [...argv];
  const child = spawn(program, args, {
    env: { PATH: `${NODE_FOLDER}:/usr/bin:/bin`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  const daemon = new SandboxdProgram(child, state_dir);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await daemon.ended;
  });
  return daemon;
}

const withState = (state_dir: string, ...rest: string[]) => [
  '--port',
  '0',
  '--state-dir',
  state_dir,
  ...rest,
];

/** Resolves once the process handles SIGUSR1 in some way: before, it would simply die of it. */
async function takesSignals(pid: number): Promise<boolean> {
  for (;;) {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'latin1');
      const sets = [...status.matchAll(/^Sig(?:Blk|Cgt):\s*([0-9a-f]+)$/gm)];
      if (sets.some(([, set]) => (BigInt(`0x${set}`) & SIGUSR1_BIT) !== 0n)) return true;
    } catch {
      return false;
    }
    await new Promise(setImmediate);
  }
}

describe('SIGUSR1 at any moment of the start', () => {
  it.each([
    ['sandboxd', ['sandboxd.cjs']],
    ['sandbox-manager', ['sandbox-manager.cjs']],
    ['sandboxctl', ['sandboxctl.cjs']],
  ])('opens no inspector in %s', async (_, [name = '']) => {
    const child = spawn(join(DIST, name), ['--version'], {
      env: { PATH: `${NODE_FOLDER}:/usr/bin:/bin` },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const said = text(child.stderr);
    const ended = once(child, 'exit');
    await takesSignals(child.pid as number);
    while (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGUSR1');
      await new Promise(setImmediate);
    }
    expect([await ended, await said]).toEqual([[0, null], '']);
  });
});

describe('variables that are meant for another Node', () => {
  it.each([
    ["npm's command", () => SANDBOXD],
    ["the image's launcher", launcherBesideDist],
  ])('do nothing to a daemon started by %s, and reach its processes', async (_, programOf) => {
    const folder = scratchFolder();
    const preload = join(folder, 'preload.cjs');
    writeFileSync(preload, `process.title = 'instrumented'`);
    const state_dir = join(folder, 'state');
    const NODE_OPTIONS = `--require=${preload} --inspect=127.0.0.1:0`;
    const env = { NODE_OPTIONS, NODE_PATH: folder, SANDBOXD_WEBHOOK_SECRET: SECRET };
    const daemon = start([programOf(), ...withState(state_dir), ...MAIN_COMMAND], { env, state_dir });
    await daemon.logged('ready');
    await expect.poll(() => daemon.stdout).toBe(`[${NODE_OPTIONS}]\n`);
    const environment = readFileSync(`/proc/${daemon.pid}/environ`, 'utf8');
    expect(environment).not.toMatch(/(^|\0)NODE_(OPTIONS|PATH)=/);
    expect(environment).not.toContain(SECRET);
    expect(readFileSync(`/proc/${daemon.pid}/cmdline`, 'utf8')).toContain('--disable-sigusr1');
    expect(readFileSync(`/proc/${daemon.pid}/comm`, 'utf8')).not.toContain('instrumented');
  });
});

describe('what a program loads', () => {
  it('is built in, part of it, or one of the packages with native code', () => {
    const known = [...builtinModules, 'better-sqlite3', '@lydell/node-pty/requireBinary.js'];
    const loaded = readdirSync(DIST)
      .filter((name) => name.endsWith('.cjs') && !name.startsWith('sandbox-manager'))
      .flatMap((name) => {
        const lines = readFileSync(join(DIST, name), 'utf8').split('\n');
        return lines.filter((line) => !/^\s*(\*|\/\/)|code:/.test(line));
      })
      .flatMap((line) => [...line.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, id = '']) => id));
    const outside = loaded.filter((id) => !/^(node:|\.\/)/.test(id) && !known.includes(id));
    expect(outside.filter((id) => !/^ajv/.test(id))).toEqual([]);
  });
});

describe.runIf(process.getuid?.() === 0)('a daemon that is not root', () => {
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
      argv: [join(folder, 'node'), join(folder, 'dist/sandboxd.cjs'), ...withState(state_dir)],
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
    'supervised processes can read the webhook secret from memory: use the image tree, or run as root';

  it('keeps its memory and its secret where its Node can be run and not read', async () => {
    const { argv, state_dir } = installed(0o111);
    const secret = ['--webhook-url', 'http://127.0.0.1:9/', '--webhook-secret', SECRET, '--sandbox-id', 's'];
    const daemon = start([...argv, ...secret], { uid: NOBODY, state_dir });
    await daemon.logged('ready');
    expect(daemon.log.map(({ msg }) => msg)).not.toContain(MEMORY);
    for (const name of ['mem', 'environ', 'maps']) expect(await mayRead(daemon.pid, name)).toBe(false);
    const command_line = readFileSync(`/proc/${daemon.pid}/cmdline`, 'utf8');
    expect(command_line).not.toContain(SECRET);
    expect(command_line).toContain('--sandbox-id');
    expect(await daemon.publish('{}')).toMatch(/^evt_/);
  });

  it('says that its memory can be read where its Node can be', async () => {
    const { argv, state_dir } = installed(0o755);
    const daemon = start([...argv, '--webhook-secret', SECRET], { uid: NOBODY, state_dir });
    await daemon.logged(MEMORY);
    expect(await mayRead(daemon.pid, 'mem')).toBe(true);
    expect(readFileSync(`/proc/${daemon.pid}/cmdline`, 'utf8')).not.toContain(SECRET);
  });
});

/** The launcher of the image, in a tree whose program is the built one. */
function launcherBesideDist(): string {
  const folder = scratchFolder();
  const library = join(folder, 'lib/sandboxd');
  for (const path of ['bin', 'lib/sandboxd']) mkdirSync(join(folder, path), { recursive: true });
  symlinkSync(process.execPath, join(library, 'node'));
  writeFileSync(join(library, 'sandboxd.cjs'), `require(${JSON.stringify(SANDBOXD)})`);
  writeFileSync(join(folder, 'bin/sandboxd'), launcher('sandboxd', process.arch), { mode: 0o755 });
  return join(folder, 'bin/sandboxd');
}
