import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { prepareRootfs } from '../../src/runtime/rootfs.ts';
import { scratchFolder } from '../support/scratch.ts';

describe('the root of a fork', () => {
  it('moves obstacles away without looking below them', () => {
    const rootfs = join(scratchFolder(), 'rootfs');
    mkdirSync(join(rootfs, 'etc/passwd/full'), { recursive: true });
    writeFileSync(join(rootfs, 'etc/passwd/full/file'), 'mine');
    symlinkSync('/etc', join(rootfs, 'var'));
    prepareRootfs(rootfs, 'sbx-1');
    expect(readdirSync(join(rootfs, 'var'))).toContain('lib');
    const [moved] = readdirSync(join(rootfs, 'etc')).filter((name) => name.startsWith('passwd.replaced-'));
    expect(readdirSync(join(rootfs, 'etc', moved ?? '', 'full'))).toEqual(['file']);
  });
});
