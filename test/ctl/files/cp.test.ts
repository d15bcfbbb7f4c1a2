import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  constants,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import type { ServerResponse } from 'node:http';
import { basename, join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeEach, expect, it, vi } from 'vitest';
import { daemonAt } from '../../../src/ctl/api/clients.ts';
import { findDaemon } from '../../../src/ctl/api/config.ts';
import { cp } from '../../../src/ctl/files/cp.ts';
import { Output } from '../../../src/ctl/terminal/output.ts';
import { type Ended, run, start } from '../../support/ctl/sandboxctl.ts';
import { StandInDaemon } from '../../support/ctl/stand-in-daemon.ts';
import { LocalDaemon } from '../../support/daemon/local-daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { IS_ROOT } from '../../support/rights.ts';
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

const ctl = (...args: string[]) => run(args, env);

/** Copies within this process, which is much quicker than a program. */
async function copy(
  paths: string[],
  recursive = false,
  { preserve = false, signal = new AbortController().signal, connected = env } = {},
): Promise<string> {
  const out = new PassThrough();
  const { address, token } = findDaemon({}, connected);
  const context = {
    sandbox: daemonAt(address, token).daemon.sandbox,
    shown: address.shown,
    out: new Output(out),
    err: new Output(new PassThrough().resume()),
    json: false,
  };
  const stdin = Readable.from([Buffer.from('from stdin')]);
  await cp(context, paths, { recursive, preserve, stdin, signal });
  return text(out.end());
}
const done = ({ code, stdout, stderr }: Ended) => {
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
};

it('copies files both ways: under a new name, into a directory, from stdin and to stdout', async () => {
  writeFileSync(join(here, 'file'), Buffer.alloc(3_000_000, 'some bytes '));
  chmodSync(join(here, 'file'), 0o755);
  done(await ctl('cp', join(here, 'file'), `:${there}/new/name`));
  expect(statSync(join(there, 'new/name')).mode & 0o777).toBe(0o755);
  await copy([join(here, 'file'), `:${there}`]);
  await copy([`:${there}/file`, `:${there}/new/name`, `${here}/`]);
  expect(readFileSync(join(here, 'name')).equals(readFileSync(join(here, 'file')))).toBe(true);
  expect(statSync(join(here, 'name')).mode & 0o777).toBe(0o755);
  await copy(['-', `:${there}/piped`]);
  expect(await copy([`:${there}/piped`, '-'])).toBe('from stdin');
  expect(done(await ctl('cat', `${there}/piped`))).toBe('from stdin');
  await copy([`:${there}/piped`, `:${there}/again`]);
  expect(readdirSync(there).sort()).toEqual(['again', 'file', 'new', 'piped']);
});

it('copies whole trees with -r, their contents with /., and says what is missing', async () => {
  mkdirSync(join(here, 'tree/sub'), { recursive: true });
  writeFileSync(join(here, 'tree/sub/file'), 'deep');
  const refused = await ctl('cp', join(here, 'tree'), `:${there}/tree`);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    `sandboxctl: ${here}/tree is a directory: copy it with -r\n`,
  ]);
  for (const source of ['tree', 'tree', 'tree/.']) await copy([`${here}/${source}`, `:${there}/made`], true);
  expect(
    done(await ctl('ls', '--depth', '3', there))
      .trim()
      .split('\n'),
  ).toEqual(['made', 'made/sub', 'made/sub/file', 'made/tree', 'made/tree/sub']);
  await copy([`:${there}/made`, join(here, 'back')], true);
  execFileSync('diff', ['-r', join(there, 'made'), join(here, 'back')]);
  await expect(copy([`:${there}/none`, here])).rejects.toThrow(`:${there}/none is not there`);
  await expect(copy([here, there])).rejects.toThrow(/^one side must be in the sandbox/);
  await expect(copy([':relative', here])).rejects.toMatchObject({ exit_code: 2 });
});

it('replaces no pipe in a tree either', async () => {
  mkdirSync(join(there, 'tree'));
  writeFileSync(join(there, 'tree/pipe'), 'a file');
  execFileSync('mkfifo', [join(here, 'pipe')]);
  await expect(copy([`:${there}/tree/.`, here], true)).rejects.toThrow(/pipe is no file/);
  expect(lstatSync(join(here, 'pipe')).isFIFO()).toBe(true);
});

it('lists, describes, makes, moves, removes and watches', async () => {
  const watching = start(['watch', '-r', there], env);
  await watching.wrote(/watching/);
  done(await ctl('mkdir', '-p', `${there}/a/b`));
  await watching.wrote(/create +\S+\/a\n/);
  writeFileSync(join(there, 'file'), 'four');
  chmodSync(join(there, 'file'), 0o640);
  expect(done(await ctl('ls', '-l', there))).toMatch(/^MODE.*\nd0755 .* a\n-0640 .* 4 .* file\n$/);
  expect(JSON.parse(done(await ctl('--json', 'stat', `${there}/file`)))).toMatchObject({
    size: 4,
    type: 'file',
  });
  done(await ctl('mv', `${there}/file`, `${there}/a`));
  await watching.wrote(/rename \S+\/file -> \S+\/a\/file\n/);
  expect((await ctl('rm', `${there}/a`)).stderr).toMatch(
    /The directory is not empty. \(directory_not_empty\)/,
  );
  done(await ctl('rm', '-rf', `${there}/a`, `${there}/none`));
  expect(readdirSync(there)).toEqual([]);
  expect((await watching.ended('SIGINT')).code).toBe(0);
});

it('writes into a file that is there, through links, and leaves its mode, owner and other names', async () => {
  writeFileSync(join(there, 'new'), 'new');
  writeFileSync(join(here, 'file'), 'longer than what comes');
  chmodSync(join(here, 'file'), 0o640);
  linkSync(join(here, 'file'), join(here, 'other'));
  symlinkSync('file', join(here, 'link'));
  const { ino, uid } = statSync(join(here, 'file'));
  await copy([`:${there}/new`, join(here, 'link')]);
  expect(readFileSync(join(here, 'other'), 'utf8')).toBe('new');
  expect(lstatSync(join(here, 'link')).isSymbolicLink()).toBe(true);
  expect(statSync(join(here, 'file'))).toMatchObject({ ino, uid, nlink: 2, mode: 0o100640 });

  chmodSync(join(there, 'new'), 0o600);
  await copy([join(here, 'file'), `:${there}/new`]);
  expect(statSync(join(there, 'new')).mode & 0o7777).toBe(0o600);
  await expect(copy([`:${there}/new`, join(here, 'none/new')])).rejects.toThrow(
    `${here}/none/new: no such file`,
  );
  await expect(copy([`:${there}/none`, join(here, 'file')])).rejects.toThrow(/is not there/);
  expect(readFileSync(join(here, 'file'), 'utf8')).toBe('new');
});

it('writes into pipes that somebody reads, and names what it cannot write into', async () => {
  writeFileSync(join(there, 'new'), 'new');
  execFileSync('mkfifo', [join(here, 'pipe')]);
  symlinkSync('nowhere', join(here, 'dangling'));
  mkdirSync(join(here, 'into/new'), { recursive: true });
  await expect(copy([`:${there}/new`, join(here, 'pipe')])).rejects.toThrow(
    `${here}/pipe is a pipe that nobody reads from`,
  );
  await expect(copy([`:${there}/new`, join(here, 'dangling')])).rejects.toThrow(
    `${here}/dangling is a link that leads nowhere`,
  );
  await expect(copy([`:${there}/new`, join(here, 'into')])).rejects.toThrow(
    `${here}/into/new is a directory`,
  );
  const reader = openSync(join(here, 'pipe'), constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    await copy([`:${there}/new`, join(here, 'pipe')]);
    const read = Buffer.alloc(10);
    expect(read.toString('utf8', 0, readSync(reader, read))).toBe('new');
  } finally {
    closeSync(reader);
  }
  expect(readdirSync(here).sort()).toEqual(['dangling', 'into', 'pipe']);
  expect(lstatSync(join(here, 'pipe')).isFIFO()).toBe(true);
});

it.runIf(IS_ROOT)('writes into a device and never replaces it', async () => {
  writeFileSync(join(there, 'new'), 'new');
  execFileSync('mknod', [join(here, 'null'), 'c', '1', '3']);
  execFileSync('mknod', [join(here, 'full'), 'c', '1', '7']);
  await copy([`:${there}/new`, join(here, 'null')]);
  await expect(copy([`:${there}/new`, join(here, 'full')])).rejects.toThrow(
    `${here}/full: no space left on the device`,
  );
  for (const name of ['null', 'full']) expect(lstatSync(join(here, name)).isCharacterDevice()).toBe(true);
});

it('keeps special bits on the way up, and setuid and setgid of files on the way down with -p alone', async () => {
  writeFileSync(join(here, 'special'), 'x');
  chmodSync(join(here, 'special'), 0o6755);
  await copy([join(here, 'special'), `:${there}`]);
  expect(statSync(join(there, 'special')).mode & 0o7777).toBe(0o6755);
  const plain = await ctl('cp', `:${there}/special`, join(here, 'plain'));
  expect([plain.code, plain.stderr]).toEqual([
    0,
    `sandboxctl: :${there}/special has setuid or setgid, which only -p keeps\n`,
  ]);
  expect(statSync(join(here, 'plain')).mode & 0o7777).toBe(0o755);
  await copy([`:${there}/special`, join(here, 'kept')], false, { preserve: true });
  expect(statSync(join(here, 'kept')).mode & 0o7777).toBe(0o6755);
});

it('copies what the kernel makes and pipes whole, and names sources that change their length', async () => {
  for (const path of ['/proc/version', '/sys/kernel/mm/transparent_hugepage/enabled']) {
    const name = basename(path);
    await copy([path, `:${there}/${name}`]);
    expect(readFileSync(join(there, name), 'utf8')).toBe(readFileSync(path, 'utf8'));
  }
  execFileSync('sh', ['-c', 'mkfifo "$1"; (echo piped > "$1") >/dev/null 2>&1 &', 'sh', join(here, 'pipe')]);
  await copy([join(here, 'pipe'), `:${there}/piped`]);
  expect(readFileSync(join(there, 'piped'), 'utf8')).toBe('piped\n');

  const log = join(here, 'log');
  const length = 64 * 1024 * 1024;
  const changing = async (change: () => void) => {
    await eventually(() => expect(() => isUnderWay(there)).toThrow());
    writeFileSync(log, '');
    truncateSync(log, length);
    const copying = copy([log, `:${there}/log`]);
    // It is under way once the sandbox has a file for it.
    await eventually(() => isUnderWay(there), { interval: 2 });
    change();
    return copying;
  };
  await expect(changing(() => truncateSync(log, 1))).rejects.toMatchObject({
    exit_code: 1,
    message: `${log} became shorter while it was copied`,
  });
  await expect(changing(() => appendFileSync(log, 'more'))).rejects.toMatchObject({
    exit_code: 1,
    message: `${log} became longer while it was copied; its first ${length} bytes were copied`,
  });
});

it('writes into files of the kernel as they take it: in order, with no length and no sync', async () => {
  const value = join('/proc', String(process.pid), 'oom_score_adj');
  const before = Number(readFileSync(value, 'utf8'));
  writeFileSync(join(there, 'value'), `${before + 1}\n`);
  await copy([`:${there}/value`, value]);
  expect(Number(readFileSync(value, 'utf8'))).toBe(before + 1);
});

it('leaves nothing on either side when it is interrupted', async () => {
  writeFileSync(join(there, 'endless'), '');
  truncateSync(join(there, 'endless'), 2 ** 42);
  execFileSync('mkfifo', [join(there, 'pipe')]);
  const writer = openSync(join(there, 'pipe'), constants.O_RDWR);
  const interrupt = async (args: string[], signal: NodeJS.Signals, begun: (pid: number) => void) => {
    const copying = start(['cp', ...args], { ...env, TMPDIR: here });
    await eventually(() => begun(copying.child.pid ?? 0));
    expect((await copying.ended(signal)).stderr).toBe('sandboxctl: interrupted\n');
    expect(copying.child.signalCode).toBe(signal);
  };
  try {
    writeSync(writer, 'some bytes');
    await interrupt([join(there, 'pipe'), `:${here}/piped`], 'SIGHUP', () => isUnderWay(here));
    await interrupt([`:${there}/endless`, join(here, 'endless')], 'SIGINT', (pid) => {
      const opened = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
      if (!opened.some((path) => path.startsWith(here))) throw new Error('not yet');
    });
  } finally {
    closeSync(writer);
  }
  mkdirSync(join(there, 'tree'));
  writeFileSync(join(there, 'tree/file'), Buffer.alloc(400_000_000, 1));
  for (const name of ['down', 'up']) {
    const interruption = new AbortController();
    const paths =
      name === 'down' ? [`:${there}/tree`, join(here, name)] : [join(there, 'tree'), `:${here}/${name}`];
    const copying = copy(paths, true, { signal: interruption.signal });
    await eventually(() => isUnderWay(join(here, name)), { interval: 2 });
    interruption.abort('SIGINT');
    await expect(copying).rejects.toThrow(/^interrupted$/);
  }
  await eventually(() => {
    expect(readdirSync(here, { recursive: true }).sort()).toEqual(['down', 'up']);
  });
});

it('is interrupted while the sandbox does not answer, and while the other end of a pipe does nothing', async () => {
  const daemon = new StandInDaemon();
  const url = await daemon.start();
  const local = { SANDBOXD_URL: url, SANDBOXD_STATE_DIR: here };
  writeFileSync(join(here, 'file'), 'x');
  execFileSync('mkfifo', [join(here, 'pipe')]);
  const file = join(here, 'file');
  const interrupted = async (paths: string[], begun: () => unknown, connected: Record<string, string>) => {
    const interruption = new AbortController();
    const copying = copy(paths, true, { signal: interruption.signal, connected });
    copying.catch(() => {});
    await eventually(begun, { interval: 2 });
    interruption.abort('SIGINT');
    await expect(copying).rejects.toThrow(/^interrupted$/);
  };
  const asked = (count: number) => () => expect(daemon.received.length).toBe(count);
  const silent = (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/octet-stream' }).write('some');
  };
  try {
    let count = 0;
    for (const route of ['GET /files/stat', 'GET /files']) daemon.on(route, () => {});
    for (const paths of [
      [':/file', '-'],
      [':/file', here],
      [file, ':/file'],
      [here, ':/tree'],
      [':/file', ':/other'],
      [file, file, ':/tree'],
    ]) {
      await interrupted(paths, asked(++count), local);
    }
    let is_sent = false;
    daemon.on('GET /files', (_request, response) => {
      silent(response);
      is_sent = true;
    });
    await interrupted([':/file', '-'], () => expect(is_sent).toBe(true), local);
  } finally {
    await daemon.stop();
  }
  let opened = 0;
  await interrupted([join(here, 'pipe'), `:${there}/piped`], () => expect(++opened).toBe(2), env);
  writeFileSync(join(there, 'long'), Buffer.alloc(1_000_000));
  const reader = openSync(join(here, 'pipe'), constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const begun = () => readSync(reader, Buffer.alloc(1));
    await interrupted([`:${there}/long`, join(here, 'pipe')], begun, env);
  } finally {
    closeSync(reader);
  }
  expect([readdirSync(here).sort(), readdirSync(there)]).toEqual([['file', 'pipe'], ['long']]);
});

/** Throws unless something is being written into a folder. */
function isUnderWay(folder: string): void {
  if (!readdirSync(folder).some((name) => name.startsWith('.sandboxd-upload-'))) throw new Error('not yet');
}
