import { expect, it } from 'vitest';
import {
  encodeProgram,
  JUMP_IF_EQUAL,
  LOAD,
  RETURN,
  skipIf,
  skipUnless,
  statement,
} from '../../../src/runtime/seccomp/bpf.ts';

it("a program is encoded as the kernel's struct sock_filter", () => {
  const program = [
    statement(LOAD, 4),
    skipIf(JUMP_IF_EQUAL, 0xc000003e, 1),
    skipUnless(JUMP_IF_EQUAL, 7, 255),
    statement(RETURN, 0x7fff0000),
  ];
  expect(encodeProgram(program).toString('hex')).toBe(
    ['2000000004000000', '150001003e0000c0', '150000ff07000000', '060000000000ff7f'].join(''),
  );
});

it('a jump that is too long is refused', () => {
  expect(() => encodeProgram([skipIf(JUMP_IF_EQUAL, 1, 256)])).toThrow(RangeError);
});
