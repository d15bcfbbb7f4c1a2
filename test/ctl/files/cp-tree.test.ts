import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeEach, expect, it, vi } from 'vitest';
import { daemonAt } from '../../../src/ctl/api/clients.ts';
import { findDaemon } from '../../../src/ctl/api/config.ts';
import { cp } from '../../../src/ctl/files/cp.ts';
import { Output } from '../../../src/ctl/terminal/output.ts';
import { LocalDaemon } from '../../support/daemon/local-daemon.ts';
import { IS_ROOT, IS_UID_0 } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

vi.setConfig({ testTimeout: 60_000 });

let env: Record<string, string>;
let here: string;
let there: string;

beforeEach(async () => {
  const { daemon } = await LocalDaemon.start();
  env = { SANDBOXD_URL: daemon.url, SANDBOXD_STATE_DIR: daemon.config.state_dir };
  here = scratchFolder();
  there = scratchFolder();
});

/** Copies a tree; resolves with the exit code, and with what was said on stderr. */
async function copyTree(
  from: string,
  to: string,
  { preserve = false, user }: { preserve?: boolean; user?: string | undefined } = {},
): Promise<[code: number, said: string]> {
  const err = new PassThrough();
  const { address, token } = findDaemon({}, env);
  const context = {
    sandbox: daemonAt(address, token).daemon.sandbox,
    shown: address.shown,
    out: new Output(new PassThrough().resume()),
    err: new Output(err),
    json: false,
  };
  const signal = new AbortController().signal;
  const stdin = Readable.from([]);
  const code = await cp(context, [from, to], { recursive: true, preserve, user, stdin, signal });
  return [code, await text(err.end())];
}

const modeOf = (path: string) => statSync(path).mode & 0o7777;

it('keeps special bits of files on the way up, and setuid and setgid on the way down with -p alone', async () => {
  const tree = join(here, 'tree');
  mkdirSync(join(tree, 'sub'), { recursive: true });
  const modes = { 'sub/both': 0o6755, 'sub/sticky': 0o1700, 'sub/group': 0o2710 };
  for (const [name, mode] of Object.entries(modes)) {
    writeFileSync(join(tree, name), name);
    chmodSync(join(tree, name), mode);
  }
  const modesIn = (top: string) => Object.keys(modes).map((name) => modeOf(join(top, name)));
  expect(await copyTree(tree, `:${there}`)).toEqual([0, '']);
  expect(modesIn(join(there, 'tree'))).toEqual(Object.values(modes));
  expect(await copyTree(`:${there}/tree/`, join(here, 'plain'))).toEqual([
    0,
    ['both', 'group']
      .map((name) => `sandboxctl: :${there}/tree/sub/${name} has setuid or setgid, which only -p keeps\n`)
      .join(''),
  ]);
  expect(modesIn(join(here, 'plain'))).toEqual([0o755, 0o1700, 0o710]);
  expect(await copyTree(`:${there}/tree`, join(here, 'kept'), { preserve: true })).toEqual([0, '']);
  expect(modesIn(join(here, 'kept'))).toEqual(Object.values(modes));
});

/** Makes a tree with something of everything that a copy can keep. */
function makeTree(top: string): void {
  for (const name of ['sub/deep', 'sticky', 'group', 'closed', `${'long'.repeat(60)}/${'name'.repeat(50)}`])
    mkdirSync(join(top, name), { recursive: true });
  const files: [name: string | Buffer, content: string, mode: number][] = [
    ['empty', '', 0o644],
    ['sub/plain', 'plain', 0o640],
    ['sub/deep/setuid', 'setuid', 0o4755],
    ['closed/read-only', 'read-only', 0o444],
    ['sticky/sticky', 'sticky', 0o1666],
    [`${'long'.repeat(60)}/${'name'.repeat(50)}/${'file'.repeat(60)}`, 'far', 0o600],
    [Buffer.from('odd \xff\n\\\u{1b}[31m', 'latin1'), 'odd', 0o604],
  ];
  for (const [name, content, mode] of files) {
    const path = Buffer.concat([Buffer.from(`${top}/`), Buffer.from(name as Buffer)]);
    writeFileSync(path, content);
    chmodSync(path, mode);
    utimesSync(path, 1_000_000_000, 1_000_000_001);
  }
  writeFileSync(join(top, 'sparse'), 'begin');
  truncateSync(join(top, 'sparse'), 50_000_000);
  appendFileSync(join(top, 'sparse'), 'end');
  linkSync(join(top, 'sub/plain'), join(top, 'sub/deep/linked'));
  symlinkSync('none', join(top, 'sub/twice'));
  linkSync(join(top, 'sub/twice'), join(top, 'sub/deep/twice'));
  execFileSync('mkfifo', ['-m', '620', join(top, 'sub/pipe')]);
  for (const [name, target] of [
    ['link', 'sub/plain'],
    ['sub/dangling', 'none/at/all'],
    ['sub/deep/up', '../..'],
    ['out', '/etc/hosts'],
  ] as const)
    symlinkSync(target, join(top, name));
  for (const name of ['link', 'sub/dangling', 'sub/pipe', 'out'])
    lutimesSync(join(top, name), 1, 1_100_000_000);
  const modes = { sticky: 0o1777, group: 0o2750, closed: 0o555, 'sub/deep': 0o700, sub: 0o755, '.': 0o711 };
  for (const [name, mode] of Object.entries(modes)) chmodSync(join(top, name), mode);
  for (const name of Object.keys(modes)) utimesSync(join(top, name), 1, 1_200_000_000 + name.length);
}

/** All that is to be equal in a tree and its copy, by path. */
function described(top: string): Record<string, unknown> {
  const first_names = new Map<number, string>();
  const below = (name: string): string[] => {
    const path = Buffer.from(`${top}/${name}`, 'latin1');
    if (!lstatSync(path).isDirectory()) return [name];
    const names = readdirSync(path, { encoding: 'latin1' as 'utf8' });
    return [name, ...names.sort().flatMap((each) => below(`${name}/${each}`))];
  };
  const describe = (name: string) => {
    const path = Buffer.from(`${top}/${name}`, 'latin1');
    const stat = lstatSync(path);
    if (!stat.isDirectory() && !first_names.has(stat.ino)) first_names.set(stat.ino, name);
    return {
      mode: stat.mode.toString(8),
      modified: Math.floor(stat.mtimeMs / 1_000),
      same: first_names.get(stat.ino),
      target: stat.isSymbolicLink() ? readlinkSync(path, 'latin1') : null,
      size: stat.isFile() ? stat.size : null,
      content: stat.isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : null,
      is_sparse: stat.isFile() && stat.blocks * 512 < stat.size / 2,
    };
  };
  return Object.fromEntries(below('.').map((name) => [name, describe(name)]));
}

it('keeps everything of a tree there and back, and names what cannot be kept', async () => {
  const tree = join(here, 'tree');
  makeTree(tree);
  const expected = described(tree);
  const server = createServer().listen(join(tree, 'group/socket'));
  if (IS_ROOT) execFileSync('mknod', [join(tree, 'group/device'), 'c', '1', '3']);
  const lost = (top: string) =>
    [...(IS_ROOT ? ['group/device is a device'] : []), 'group/socket is a socket']
      .map((each) => `sandboxctl: ${top}/${each}, which is left out\n`)
      .join('');
  try {
    utimesSync(join(tree, 'group'), 1, 1_200_000_005);
    expect(await copyTree(tree, `:${there}`)).toEqual([1, lost(tree)]);
    expect(described(join(there, 'tree'))).toEqual(expected);
    const again = createServer().listen(join(there, 'tree/group/socket'));
    if (IS_ROOT) execFileSync('mknod', [join(there, 'tree/group/device'), 'c', '1', '3']);
    utimesSync(join(there, 'tree/group'), 1, 1_200_000_005);
    expect(await copyTree(`:${there}/tree`, join(here, 'back'), { preserve: true })).toEqual([
      1,
      lost(`:${there}/tree`),
    ]);
    expect(described(join(here, 'back'))).toEqual(expected);
    again.close();
  } finally {
    server.close();
  }
});

it('leaves out links that lead out of a tree of the sandbox, unless with -p', async () => {
  const tree = join(there, 'tree');
  mkdirSync(tree);
  symlinkSync('/etc/hosts', join(tree, 'out'));
  symlinkSync('.', join(tree, 'self'));
  writeFileSync(join(tree, 'z'), 'z');
  const [code, said] = await copyTree(`:${tree}`, join(here, 'back'));
  expect([code, said]).toEqual([
    1,
    `sandboxctl: :${tree}/out is a link that leads out of the tree, which only -p keeps\n`,
  ]);
  expect(readdirSync(join(here, 'back'))).toEqual(['self', 'z']);
  expect(await copyTree(`:${tree}`, join(here, 'kept'), { preserve: true })).toEqual([0, '']);
  expect(readlinkSync(join(here, 'kept/out'))).toBe('/etc/hosts');
});

it('names the first losses of many', async () => {
  const tree = join(there, 'tree');
  mkdirSync(tree);
  for (let i = 0; i < 25; i++) symlinkSync('/', join(tree, `link-${String(i).padStart(2, '0')}`));
  const [code, said] = await copyTree(`:${tree}`, join(here, 'back'));
  const lines = said.trim().split('\n');
  expect([code, lines.length, lines.at(-1)]).toEqual([1, 21, `sandboxctl: and 5 more in :${tree}`]);
});

it('leaves files and directories that are there their mode and owner, and pipes as they are', async () => {
  for (const [top, mode] of [
    [join(here, 'tree'), 0o640],
    [join(there, 'tree'), 0o604],
  ] as const) {
    mkdirSync(join(top, 'sub'), { recursive: true });
    chmodSync(join(top, 'sub'), mode | 0o111);
    writeFileSync(join(top, 'sub/file'), top);
    chmodSync(join(top, 'sub/file'), mode);
    execFileSync('mkfifo', [join(top, 'pipe')]);
    utimesSync(join(top, 'sub'), 1, 1_200_000_000 + mode);
  }
  if (IS_UID_0) for (const top of [here, there]) chownSync(join(top, 'tree/sub/file'), 12_345, 54_321);
  for (const [from, to, mode] of [
    [`${here}/tree/.`, `:${there}/tree`, 0o604],
    [`:${there}/tree/.`, join(here, 'tree'), 0o640],
  ] as const) {
    const top = to.replace(':', '');
    expect(await copyTree(from, to)).toEqual([0, '']);
    const { uid, gid } = statSync(join(top, 'sub/file'));
    if (IS_UID_0) expect([uid, gid]).toEqual([12_345, 54_321]);
    expect([modeOf(join(top, 'sub/file')), modeOf(join(top, 'sub'))]).toEqual([mode, mode | 0o111]);
    expect(readFileSync(join(top, 'sub/file'), 'utf8')).toBe(join(here, 'tree'));
  }
});

it('copies the rest of a tree where something cannot be read', async () => {
  const [from, to] = IS_UID_0 ? [there, here] : [here, there];
  const tree = join(from, 'tree');
  for (const name of [from, tree, join(tree, 'closed')]) mkdirSync(name, { recursive: true });
  for (const name of ['file', 'other']) writeFileSync(join(tree, name), name);
  mkdirSync(join(tree, 'listed/sub'), { recursive: true });
  symlinkSync('sub', join(tree, 'listed/link'));
  chmodSync(join(tree, 'listed'), IS_UID_0 ? 0o744 : 0o400);
  chmodSync(from, 0o755);
  chmodSync(join(tree, 'file'), IS_UID_0 ? 0o700 : 0);
  chmodSync(join(tree, 'closed'), IS_UID_0 ? 0o700 : 0o300);
  const shown = IS_UID_0 ? `:${tree}` : tree;
  const lost = ['closed', 'file', 'listed/link', 'listed/sub'].map(
    (name) => `sandboxctl: ${shown}/${name} cannot be read: permission denied\n`,
  );
  expect(await copyTree(shown, IS_UID_0 ? to : `:${to}`, { user: IS_UID_0 ? 'nobody' : undefined })).toEqual([
    1,
    lost.join(''),
  ]);
  expect(readdirSync(join(to, 'tree'))).toEqual(['closed', 'listed', 'other']);
});
