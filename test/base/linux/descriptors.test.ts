import { execFileSync, type StdioOptions } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { areDescriptorsShort, descriptorLimit } from '../../../src/base/linux/descriptors.ts';

describe('descriptors', () => {
  it('are limited as the shell says', () => {
    // A child's limit is that of its parent.
    const limit = execFileSync('/bin/sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim();
    expect(String(descriptorLimit())).toBe(limit);
  });

  it('are short once less than a quarter of a small limit is free', () => {
    const held: number[] = [];
    onTestFinished(() => held.forEach(closeSync));
    const limit = 1_000;
    expect(areDescriptorsShort(limit)).toBe(false);
    while (held.length < 751) held.push(openSync('/dev/null', 'r'));
    expect(areDescriptorsShort(limit)).toBe(true);
  });

  it('are never short where the limit is large', () => {
    expect(areDescriptorsShort(1_024)).toBe(false);
    expect(areDescriptorsShort(Number.POSITIVE_INFINITY)).toBe(false);
  });

  it('of the parent are closed at the beginning of a program, unless they are named', () => {
    const file = fileURLToPath(new URL('../../../src/base/linux/descriptors.ts', import.meta.url));
    const program = `import { existsSync } from 'node:fs';
      import { closeInherited } from '${file}';
      const open = () => ['30', '31', '32'].filter((fd) => existsSync('/proc/self/fd/' + fd));
      const before = open();
      closeInherited(['--token-file=/dev/fd/31', undefined]);
      console.log(JSON.stringify([before, open()]));`;
    const fd = openSync('/dev/null', 'r');
    onTestFinished(() => closeSync(fd));
    const stdio: StdioOptions = ['ignore', 'pipe', 'inherit', ...Array(27).fill('ignore'), fd, fd, fd];
    const args = ['--input-type=module', '--eval', program];
    const printed = execFileSync(process.execPath, args, { stdio, encoding: 'utf8' });
    expect(JSON.parse(printed)).toEqual([['30', '31', '32'], ['31']]);
  });
});
