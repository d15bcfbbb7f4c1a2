import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeEach, expect, it, vi } from 'vitest';
import { Client } from '../../../src/ctl/api/client.ts';
import { findDaemon } from '../../../src/ctl/api/config.ts';
import { cp } from '../../../src/ctl/files/cp.ts';
import { Output } from '../../../src/ctl/terminal/output.ts';
import { type Ended, run, start } from '../../support/ctl/sandboxctl.ts';
import { LocalDaemon } from '../../support/daemon/local-daemon.ts';
import { eventually } from '../../support/eventually.ts';
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
async function copy(paths: string[], recursive = false): Promise<string> {
  const out = new PassThrough();
  const { address, token } = findDaemon({}, env);
  const context = {
    client: new Client(address, token),
    out: new Output(out),
    err: new Output(new PassThrough().resume()),
    json: false,
  };
  await cp(context, paths, { recursive, stdin: Readable.from([Buffer.from('from stdin')]) });
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

it('writes into what is there, through links, and replaces nothing', async () => {
  writeFileSync(join(there, 'ten'), '0123456789');
  writeFileSync(join(here, 'target'), 'longer than what is copied to it');
  chmodSync(join(here, 'target'), 0o4751);
  symlinkSync('target', join(here, 'link'));
  linkSync(join(here, 'target'), join(here, 'second'));
  const { ino } = statSync(join(here, 'target'));
  await copy([`:${there}/ten`, join(here, 'link')]);
  expect(lstatSync(join(here, 'link')).isSymbolicLink()).toBe(true);
  expect(readFileSync(join(here, 'second'), 'utf8')).toBe('0123456789');
  expect(statSync(join(here, 'target'))).toMatchObject({ ino, nlink: 2 });
  expect(statSync(join(here, 'target')).mode & 0o777).toBe(0o751);

  symlinkSync('none', join(here, 'dangling'));
  await expect(copy([`:${there}/ten`, join(here, 'dangling')])).rejects.toThrow(
    /dangling is a link to what is not there$/,
  );
  execFileSync('mkfifo', [join(here, 'pipe')]);
  const read = spawn('cat', [join(here, 'pipe')]);
  await copy([`:${there}/ten`, join(here, 'pipe')]);
  expect(await text(read.stdout)).toBe('0123456789');
  const server = createServer().listen(join(here, 'socket'));
  await once(server, 'listening');
  await expect(copy([`:${there}/ten`, join(here, 'socket')])).rejects.toThrow(/socket is no file/);
  server.close();
  if (process.getuid?.() === 0) {
    execFileSync('mknod', [join(here, 'null'), 'c', '1', '3']);
    await copy([`:${there}/ten`, join(here, 'null')]);
    expect(lstatSync(join(here, 'null')).isCharacterDevice()).toBe(true);
  }
  expect(readdirSync(here).filter((name) => name.startsWith('.'))).toEqual([]);
});

it('replaces no pipe in a tree either', async () => {
  mkdirSync(join(there, 'tree'));
  writeFileSync(join(there, 'tree/pipe'), 'a file');
  execFileSync('mkfifo', [join(here, 'pipe')]);
  await expect(copy([`:${there}/tree/.`, here], true)).rejects.toThrow(/pipe is no file/);
  expect(lstatSync(join(here, 'pipe')).isFIFO()).toBe(true);
});

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'that is interrupted by %s leaves nothing behind, and ends by it',
  async (signal) => {
    mkdirSync(join(there, 'tree'));
    execFileSync('truncate', ['-s', '4T', join(there, 'endless')]);
    execFileSync('sh', ['-c', 'head -c 500000000 /dev/zero > "$0"', join(there, 'tree/large')]);
    for (const args of [
      ['cp', `:${there}/endless`, join(here, 'file')],
      ['cp', '-r', `:${there}/tree`, join(here, 'tree')],
    ]) {
      const scratch = scratchFolder();
      const program = start(args, { ...env, TMPDIR: scratch });
      await eventually(() => expect(hiddenIn(here).length).toBeGreaterThan(0));
      program.child.kill(signal);
      expect(await once(program.child, 'exit')).toEqual([null, signal]);
      expect([hiddenIn(here), readdirSync(scratch)]).toEqual([[], []]);
    }
  },
);

function hiddenIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.includes('.sandboxd'),
  );
}

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
