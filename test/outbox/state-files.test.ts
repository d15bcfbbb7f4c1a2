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
});
