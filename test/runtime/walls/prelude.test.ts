import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { noPrelude, preludeOf } from '../../../src/runtime/walls/prelude.ts';
import { scratchFolder } from '../../support/scratch.ts';

const is_root = process.getuid?.() === 0;

it.skipIf(!is_root)(
  `a prelude shows pieces whose folders nobody else may enter, whatever their names${is_root ? '' : ' (skipped: needs root)'}`,
  () => {
    const folder = join(scratchFolder(), 'with a blank\\, a\ttab, a # and a *');
    mkdirSync(join(folder, 'one'), { recursive: true, mode: 0o755 });
    writeFileSync(join(folder, 'one', 'file'), 'shown');
    const { argv, pieces } = preludeOf({ one: join(folder, 'one') }, 8, null);
    const [program = '', ...args] = [...argv, 'setpriv', '--reuid', '65534', 'cat', `${pieces.one}/file`];
    expect(execFileSync(program, args).toString()).toBe('shown');
  },
);

it('a prelude hides no piece that lies where it would show them', () => {
  for (const path of ['/mnt', '/mnt/data', '/media/mnt']) {
    const stages = Object.values(preludeOf({ data: path, other: '/mnt/other' }, 8, null).pieces);
    expect(stages.map((stage) => stage.split('/')[1])).not.toContain('mnt');
    expect(`${path}/`.startsWith(`/${stages[0]?.split('/')[1]}/`)).toBe(false);
  }
  expect(noPrelude({ one: '/mnt/one' })).toEqual({ argv: [], pieces: { one: '/mnt/one' }, terminals: null });
});
