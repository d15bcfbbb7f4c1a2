import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
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
    /is not a directory/,
  ],
  [
    'is a link to a file',
    (folder) => {
      writeFileSync(join(folder, 'file'), '');
      symlinkSync('file', join(folder, 'link'));
      return join(folder, 'link');
    },
    /is not a directory/,
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
