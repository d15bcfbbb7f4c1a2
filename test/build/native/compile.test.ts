import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  COMPILERS,
  compileNative,
  compilerVersion,
  NATIVE_NAMES,
  nativeProgram,
} from '../../../.build/native/compile.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** Byte offsets in the header of a 64-bit ELF file, and in those of its sections. */
const SECTIONS_AT = 40;
const SECTION_NAMES = 62;
const SECTION_BYTES = 64;
const SECTION_DATA_AT = 24;
const SECTION_LENGTH_AT = 32;

it('there is none for another machine', () => {
  expect(() => nativeProgram('init', 'riscv64')).toThrow('riscv64 is not supported');
});

/** The machine code of a program: its section `.text`. How a linker lays the rest out is its own affair. */
function codeOf(file: Buffer): string {
  const section = (index: number) => {
    const header = Number(file.readBigUInt64LE(SECTIONS_AT)) + index * SECTION_BYTES;
    const at = Number(file.readBigUInt64LE(header + SECTION_DATA_AT));
    const length = Number(file.readBigUInt64LE(header + SECTION_LENGTH_AT));
    return { name_at: file.readUInt32LE(header), bytes: file.subarray(at, at + length) };
  };
  const names_index = file.readUInt16LE(SECTION_NAMES);
  const names = section(names_index).bytes;
  for (let index = 0; index < names_index; index++) {
    const { name_at, bytes } = section(index);
    if (names.toString('latin1', name_at, names.indexOf(0, name_at)) === '.text')
      return bytes.toString('hex');
  }
  throw new Error('the program has no machine code');
}

// What another compiler makes of them has the tests of their behaviour.
const KEPT = NATIVE_NAMES.flatMap((program) =>
  Object.entries(COMPILERS).map(([arch, compiler]) => [program, arch, compiler] as const),
);

describe.each(KEPT)('the %s for %s beside its source', (program, arch, { name, version }) => {
  const is_here = compilerVersion(arch) === version;
  const skipped = is_here ? '' : ' (skipped: it is not installed here)';

  it.runIf(is_here)(`is what ${name} ${version} makes of it${skipped}`, () => {
    const path = join(scratchFolder(), program);
    compileNative(program, arch, path);
    expect(codeOf(readFileSync(path))).toBe(codeOf(nativeProgram(program, arch)));
  });
});
