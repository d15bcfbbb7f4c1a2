import { expect, it } from 'vitest';
import { MachineShare, processShare, terminalShare } from '../../../src/runtime/limits/machine-share.ts';

it('a sandbox has the share of the processes that its memory is of the node', () => {
  const share = processShare(4_096, 32_768);
  expect(share.all).toBe(24_576);
  expect([128, 4_096].map((memory_mib) => share.of(memory_mib))).toEqual([768, 2_048]);
  expect(processShare(1_000_000, 32_768).of(128)).toBe(512);
});

it('however a node is divided, its sandboxes together have no more than all, but for the least', () => {
  for (const memory_mib of [512, 640, 1_000, 2_048]) {
    const share = new MachineShare(24_576, 24_000, { least: 64, most: 2_048 });
    expect(Math.floor(24_000 / memory_mib) * share.of(memory_mib)).toBeLessThanOrEqual(share.all ?? 0);
  }
});

it('a machine that does not say how much it has divides nothing', () => {
  const share = new MachineShare(null, 4_096, { least: 1, most: 2_048 });
  expect([share.all, share.of(128)]).toEqual([null, 2_048]);
});

it('terminals are divided without those that the machine keeps', () => {
  const { all } = terminalShare(null);
  expect(all === null || all > 0).toBe(true);
  expect(terminalShare(1).of(1)).toBe(256);
  expect(terminalShare(1_000_000).of(1)).toBe(8);
});
