import { describe, expect, it } from 'vitest';
import { runProgram } from '../../../src/network/namespace/programs.ts';

describe('a program of the system', () => {
  it('is given its input and nothing of this environment', async () => {
    expect(await runProgram(['cat'], 'a\nb\n')).toBe('a\nb\n');
    const environment = await runProgram(['env']);
    expect(environment).toMatch(/^PATH=\/usr\/local\/sbin:/m);
    expect(environment).not.toContain('VITEST');
  });

  it('that fails tells what it wrote', async () => {
    await expect(runProgram(['sh'], 'echo "no such thing" >&2; exit 3')).rejects.toThrow('sh: no such thing');
    await expect(runProgram(['no-such-program'], 'x')).rejects.toThrow(/ENOENT/);
  });

  it('that reads no input is no harm', async () => {
    expect(await runProgram(['true'], 'x'.repeat(1_000_000))).toBe('');
  });
});
