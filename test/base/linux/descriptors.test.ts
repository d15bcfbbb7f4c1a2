import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
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
});
