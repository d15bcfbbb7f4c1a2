import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '../../src/contract/errors.ts';
import { checkWatchDir } from '../../src/watch/watch-dir.ts';
import { runSandboxd } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const UNHEARD = ['--webhook-url', 'http://127.0.0.1:9/hook'];

/** What makes a `watch_dir` of this kind in a folder, and the reason that the start is refused for. */
const BAD: [kind: string, make: (folder: string) => string, reason: RegExp][] = [
  ['is not absolute', () => 'work/space', /absolute/],
  [
    'is a file',
    (folder) => {
      writeFileSync(join(folder, 'file'), '');
      return join(folder, 'file');
    },
    /must be a directory/,
  ],
  [
    'is a link to a file',
    (folder) => {
      writeFileSync(join(folder, 'file'), '');
      symlinkSync('file', join(folder, 'link'));
      return join(folder, 'link');
    },
    /must be a directory/,
  ],
  ['is the state directory', (folder) => join(folder, 'state'), /inside the daemon's own/],
  [
    'is inside the state directory by another name',
    (folder) => {
      mkdirSync(join(folder, 'state'), { mode: 0o700 });
      symlinkSync('state', join(folder, 'link'));
      return join(folder, 'link', 'later');
    },
    /inside the daemon's own/,
  ],
];

it.each(BAD)('a watch_dir that %s is refused at the start, with the reason', async (_kind, make, reason) => {
  const folder = scratchFolder();
  const watch_dir = make(folder);
  for (const webhook of [UNHEARD, []]) {
    const options = { state_dir: join(folder, 'state') };
    const { code, stderr } = await runSandboxd(['--watch-dir', watch_dir, ...webhook], options);
    const lines = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
    expect(code).toBe(2);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/--watch-dir/);
    expect(lines[0]).toMatch(reason);
  }
});

describe('a watch_dir that is refused', () => {
  let top: string;

  beforeEach(() => {
    top = scratchFolder();
  });

  const refusal = (watch_dir: string, own_paths: string[] = []) => {
    try {
      checkWatchDir(watch_dir, own_paths);
      return null;
    } catch (error) {
      return error instanceof ApiError ? `${error.code}: ${error.message}` : error;
    }
  };

  it('is one that is not absolute', () => {
    expect(refusal('src')).toMatch(/^invalid_request: .*must be an absolute path/);
  });

  it('is a file', () => {
    writeFileSync(join(top, 'f'), '');
    expect(refusal(join(top, 'f'))).toMatch(/^invalid_request: .*must be a directory/);
  });

  it('is one inside the state directory, under any name', () => {
    mkdirSync(join(top, 'state'));
    symlinkSync(join(top, 'state'), join(top, 'link'));
    expect(refusal(join(top, 'state'), [join(top, 'state')])).toMatch(/inside the daemon's own/);
    expect(refusal(join(top, 'state', 'not', 'yet'), [join(top, 'state')])).toMatch(
      /inside the daemon's own/,
    );
    expect(refusal(join(top, 'link', 'x'), [join(top, 'state')])).toMatch(/inside the daemon's own/);
  });

  it('is not one that does not exist or that contains the state directory', () => {
    expect(refusal(join(top, 'later'))).toBeNull();
    expect(refusal(top, [join(top, 'state')])).toBeNull();
    expect(existsSync(join(top, 'later'))).toBe(false);
  });
});
