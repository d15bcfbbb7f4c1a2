import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { noPrelude, type Prelude, preludeOf } from '../../../src/runtime/walls/prelude.ts';
import { IS_ROOT } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

const needs_root = IS_ROOT ? '' : ' (skipped: needs root)';

function shownBy({ argv, pieces }: Prelude): string {
  const [program = '', ...args] = [...argv, 'setpriv', '--reuid', '65534', 'cat', `${pieces.one}/file`];
  return execFileSync(program, args).toString();
}

it.skipIf(!IS_ROOT)(
  `a prelude shows pieces whose folders nobody else may enter, whatever their names${needs_root}`,
  () => {
    const folder = join(scratchFolder(), 'with a blank\\, a\ttab, a # and a *');
    mkdirSync(join(folder, 'one'), { recursive: true, mode: 0o755 });
    writeFileSync(join(folder, 'one', 'file'), 'shown');
    expect(shownBy(preludeOf({ one: join(folder, 'one') }, 8, null))).toBe('shown');
  },
);

it.skipIf(!IS_ROOT)(`a prelude shows pieces in memory, where devices cannot be changed${needs_root}`, () => {
  const folder = mkdtempSync('/dev/shm/sandboxd-test-');
  onTestFinished(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'file'), 'shown');
  const prelude = preludeOf({ one: folder }, 8, null);
  expect(shownBy(prelude)).toBe('shown');
  const [program = '', ...args] = [...prelude.argv, 'chmod', '600', '/dev/null'];
  expect(() => execFileSync(program, args, { stdio: 'pipe' })).toThrow('Read-only file system');
});

it('a prelude hides no piece that lies where it would show them', () => {
  for (const path of ['/mnt', '/mnt/data', '/media/mnt']) {
    const stages = Object.values(preludeOf({ data: path, other: '/mnt/other' }, 8, null).pieces);
    expect(stages.map((stage) => stage.split('/')[1])).not.toContain('mnt');
    expect(`${path}/`.startsWith(`/${stages[0]?.split('/')[1]}/`)).toBe(false);
  }
  expect(noPrelude({ one: '/mnt/one' })).toEqual({ argv: [], pieces: { one: '/mnt/one' }, terminals: null });
});
