import { spawnSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeFolder, makeFolderSync } from '../../src/base/folder.ts';
import { scratchFolder } from '../support/scratch.ts';

describe.each([makeFolder, makeFolderSync])('$name', (make) => {
  it('makes a folder with all that leads to it, for its owner alone, and is content with one that is there', async () => {
    const path = join(scratchFolder(), 'var', 'lib', 'sandboxd');
    for (let time = 1; time <= 2; time++) {
      await make(path);
      expect(statSync(path).mode & 0o777).toBe(0o700);
    }
  });

  it('tells what is in the way', async () => {
    const file = join(scratchFolder(), 'file');
    writeFileSync(file, '');
    await expect((async () => make(join(file, 'state')))()).rejects.toThrow(/ENOTDIR/);
  });

  it('does not look without end for what was removed', () => {
    const module = new URL('../../src/base/folder.ts', import.meta.url).href;
    const program = `
      import { rmdirSync } from 'node:fs';
      import { ${make.name} } from ${JSON.stringify(module)};
      process.chdir(process.argv[1]);
      rmdirSync(process.argv[1]);
      try { await ${make.name}('state/kept'); } catch (error) { console.log(error.message); }`;
    const removed = scratchFolder();
    const ended = spawnSync(process.execPath, ['--input-type=module', '-e', program, removed], {
      timeout: 60_000,
      encoding: 'utf8',
    });
    expect(ended.signal).toBeNull();
    expect(ended.stdout).toMatch(/^ENOENT/);
  });
});
