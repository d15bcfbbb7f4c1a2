import { spawnSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { prepareStateDir } from '../../src/outbox/state-files.ts';
import { scratchFolder } from '../support/scratch.ts';

describe('the state directory', () => {
  it('is made with all that leads to it, for its owner alone', () => {
    const state_dir = join(scratchFolder(), 'var', 'lib', 'sandboxd');
    prepareStateDir(state_dir);
    expect(statSync(state_dir).mode & 0o777).toBe(0o700);
  });

  it('is refused below a file, with the reason', () => {
    const file = join(scratchFolder(), 'file');
    writeFileSync(file, '');
    expect(() => prepareStateDir(join(file, 'state'))).toThrow(/^state directory .*ENOTDIR/);
  });

  it('is refused, and not looked for without end, where everything above it was removed', () => {
    const module = new URL('../../src/outbox/state-files.ts', import.meta.url).href;
    const program = `
      import { rmdirSync } from 'node:fs';
      import { prepareStateDir } from ${JSON.stringify(module)};
      process.chdir(process.argv[1]);
      rmdirSync(process.argv[1]);
      try { prepareStateDir('state/kept'); } catch (error) { console.log(error.message); }`;
    const removed = scratchFolder();
    const ended = spawnSync(process.execPath, ['--input-type=module', '-e', program, removed], {
      timeout: 20_000,
      encoding: 'utf8',
    });
    expect(ended.signal).toBeNull();
    expect(ended.stdout).toMatch(/^state directory state\/kept: ENOENT/);
  });
});
