import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeEach, expect, it, vi } from 'vitest';
import { Client } from '../../../src/ctl/api/client.ts';
import { findDaemon } from '../../../src/ctl/api/config.ts';
import { cp } from '../../../src/ctl/files/cp.ts';
import { Output } from '../../../src/ctl/terminal/output.ts';
import { LocalDaemon } from '../../support/daemon/local-daemon.ts';
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
async function copyTree(from: string, to: string, preserve = false): Promise<[code: number, said: string]> {
  const err = new PassThrough();
  const { address, token } = findDaemon({}, env);
  const context = {
    client: new Client(address, token),
    out: new Output(new PassThrough().resume()),
    err: new Output(err),
    json: false,
  };
  const signal = new AbortController().signal;
  const code = await cp(context, [from, to], { recursive: true, preserve, stdin: Readable.from([]), signal });
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
  expect(await copyTree(`:${there}/tree`, join(here, 'kept'), true)).toEqual([0, '']);
  expect(modesIn(join(here, 'kept'))).toEqual(Object.values(modes));
});
