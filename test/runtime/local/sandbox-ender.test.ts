import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { removeDirectory } from '../../../src/runtime/local/sandbox-ender.ts';
import { AS_ORDINARY_USER } from '../../support/rights.ts';
import { Sandboxes, spec } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

describe('the removal of a sandbox', () => {
  it('takes away trees that are deeper than a path may be long', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1'));
    const dig = `cd /root && perl -e 'for (1..3000) { mkdir "deep"; chdir "deep" or exit 1 }'`;
    expect((await sandboxes.run('sbx-1', dig)).exit_code).toBe(0);
    await sandboxes.runtime.end('sbx-1');
    await sandboxes.runtime.remove('sbx-1');
    expect(await sandboxes.runtime.list()).toEqual([]);
  });

  it('follows no link, and takes away a hundred thousand files', async () => {
    const folder = scratchFolder();
    const kept = join(folder, 'kept');
    mkdirSync(kept);
    writeFileSync(join(kept, 'file'), 'here');
    const tree = join(folder, 'tree');
    mkdirSync(tree);
    symlinkSync(kept, join(tree, 'directory'));
    symlinkSync(join(kept, 'file'), join(tree, 'file'));
    symlinkSync('/', join(tree, 'root'));
    spawnSync('sh', ['-c', `cd ${tree} && seq 100000 | xargs touch`]);
    expect(readdirSync(tree)).toHaveLength(100_003);
    await removeDirectory(tree);
    expect(existsSync(tree)).toBe(false);
    expect(readdirSync(kept)).toEqual(['file']);
  });

  it('says what is left where something cannot be removed', async () => {
    await expect(removeDirectory('/proc/self/fd')).rejects.toThrow('/proc/self/fd cannot be removed');
  });

  it('takes away directories that their owner may not write to', () => {
    const folder = scratchFolder();
    chmodSync(folder, 0o777);
    const [program_before = '', ...rights] = AS_ORDINARY_USER;
    const made = spawnSync(
      program_before,
      [
        ...rights,
        ...['sh', '-c'],
        `mkdir -p ${folder}/tree/a/b && touch ${folder}/tree/a/b/c && chmod 0 ${folder}/tree/a/b && chmod 0500 ${folder}/tree/a`,
      ],
      { encoding: 'utf8' },
    );
    expect(made.stderr).toBe('');
    const source = join(import.meta.dirname, '../../../src/runtime/local/sandbox-ender.ts');
    const program = `await (await import(${JSON.stringify(source)})).removeDirectory('${folder}/tree')`;
    const node = [process.execPath, '--input-type=module', '-e', program];
    const removed = spawnSync(program_before, [...rights, ...node], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '' },
    });
    expect(removed.stderr).toBe('');
    expect(existsSync(join(folder, 'tree'))).toBe(false);
  });
});
