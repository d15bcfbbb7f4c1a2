import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  MachineShare,
  processShare,
  processShortage,
  raiseOpenFiles,
  raiseProcessNumbers,
  sandboxesByProcesses,
  terminalShare,
} from '../../../src/runtime/limits/machine-share.ts';
import { scratchFolder } from '../../support/scratch.ts';

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

it('where process numbers are too few for all sandboxes of a size, that is told with the number to set', () => {
  const share = processShare(24_000, 32_768);
  expect(processShortage(share, 128)).toMatch(
    /set kernel.pid_max and kernel.threads-max to 127659 at least$/,
  );
  expect(processShortage(processShare(24_000, 127_659), 128)).toBeNull();
  expect(processShortage(processShare(24_000, null), 128)).toBeNull();
  expect(sandboxesByProcesses(share)).toBe(384);
  expect(sandboxesByProcesses(processShare(24_000, null))).toBeNull();
});

it('the memory whose share processes are is that of the sandbox that may have them', () => {
  const share = processShare(4_096, 32_768);
  expect(share.memoryOf(768)).toBe(128);
  expect(share.memoryOf(share.of(256))).toBe(256);
  expect(new MachineShare(null, 4_096, { least: 1, most: 2 }).memoryOf(2_048)).toBe(0);
});

it('open files are as many as memory pays for, or that is told', () => {
  const file = join(scratchFolder(), 'file-max');
  writeFileSync(file, '1000\n');
  expect(raiseOpenFiles(1_024, file)).toBeNull();
  expect(readFileSync(file, 'utf8')).toBe('6710887');
  writeFileSync(file, '9223372036854775807\n');
  expect(raiseOpenFiles(1_024, file)).toBeNull();
  expect(readFileSync(file, 'utf8')).toBe('9223372036854775807\n');
  expect(raiseOpenFiles(1_024, join(scratchFolder(), 'none'))).toMatch(
    /set fs.file-max to 6710887 at least$/,
  );
});

it('process numbers are as many as the smallest sandboxes need that memory holds', () => {
  const file = join(scratchFolder(), 'pid_max');
  const { all } = processShare(null);
  const wanted = all === null ? 0 : all + 1;
  for (const [before, after] of [
    [wanted - 1, Math.ceil(wanted / 0.75)],
    [4_194_304, 4_194_304],
  ]) {
    writeFileSync(file, `${before}`);
    // One sandbox for each 512 of them, and one more.
    const share = raiseProcessNumbers((Math.ceil(wanted / 512) + 1) * 128, 128, file);
    expect(Number(readFileSync(file, 'utf8'))).toBeGreaterThanOrEqual(after as number);
    expect(share.all).toBe(all);
  }
  writeFileSync(file, '1000');
  raiseProcessNumbers(128, 128, file);
  expect(readFileSync(file, 'utf8')).toBe('1000');
  expect(raiseProcessNumbers(1_000_000, 128, join(scratchFolder(), 'none')).all).toBe(all);
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
