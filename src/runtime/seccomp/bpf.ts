/** One instruction of classic BPF. Source: linux/filter.h, `struct sock_filter`. */
export interface Instruction {
  code: number;
  /** How many instructions a jump skips if its condition holds, and if it does not. */
  jt: number;
  jf: number;
  k: number;
}

/** `BPF_LD | BPF_W | BPF_ABS`: loads a word of the data into the accumulator. */
export const LOAD = 0x20;
/** `BPF_JMP | BPF_JEQ | BPF_K`. */
export const JUMP_IF_EQUAL = 0x15;
/** `BPF_JMP | BPF_JGT | BPF_K`, unsigned. */
export const JUMP_IF_GREATER = 0x25;
/** `BPF_JMP | BPF_JSET | BPF_K`: whether any of the bits is set. */
export const JUMP_IF_ANY_BIT = 0x45;
/** `BPF_RET | BPF_K`. */
export const RETURN = 0x06;

const INSTRUCTION_BYTES = 8;

/** An instruction without a jump. */
export function statement(code: number, k: number): Instruction {
  return { code, jt: 0, jf: 0, k };
}

/** Runs the following `length` instructions only if the condition does not hold. */
export function skipIf(code: number, k: number, length: number): Instruction {
  return { code, jt: length, jf: 0, k };
}

/** Runs the following `length` instructions only if the condition holds. */
export function skipUnless(code: number, k: number, length: number): Instruction {
  return { code, jt: 0, jf: length, k };
}

/** The program as the kernel reads it, on little-endian machines. */
export function encodeProgram(program: Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * INSTRUCTION_BYTES);
  for (const [index, { code, jt, jf, k }] of program.entries()) {
    const at = index * INSTRUCTION_BYTES;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(jt, at + 2);
    bytes.writeUInt8(jf, at + 3);
    bytes.writeUInt32LE(k, at + 4);
  }
  return bytes;
}
