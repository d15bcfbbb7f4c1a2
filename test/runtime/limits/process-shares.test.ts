import { expect, it } from 'vitest';
import { ProcessShares } from '../../../src/runtime/limits/process-shares.ts';

it('a sandbox has the share of the processes that its memory is of the node', () => {
  const shares = new ProcessShares(4_096, 32_768);
  expect(shares.all).toBe(24_576);
  expect(shares.of(128)).toBe(768);
  expect(shares.of(4_096)).toBe(2_048);
  expect(new ProcessShares(1_000_000, 32_768).of(128)).toBe(64);
});

it('however a node is divided, its sandboxes together have no more than all, but for the least', () => {
  for (const memory_mib of [512, 640, 1_000, 2_048]) {
    const shares = new ProcessShares(24_000, 32_768);
    expect(Math.floor(24_000 / memory_mib) * shares.of(memory_mib)).toBeLessThanOrEqual(shares.all ?? 0);
  }
});

it('a machine that does not say how many it has divides nothing', () => {
  const shares = new ProcessShares(4_096, null);
  expect([shares.all, shares.of(128)]).toEqual([null, 2_048]);
});
