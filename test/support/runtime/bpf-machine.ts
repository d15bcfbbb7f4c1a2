/** One system call, as a filter sees it. */
export interface SeenCall {
  machine: number;
  number: number;
  /** The first ones; the others are 0. */
  args?: number[];
}

/** Runs a classic BPF program as the kernel does and returns its answer. Throws for what the kernel refuses to load. */
export function answerOf(program: Buffer, { machine, number, args = [] }: SeenCall): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number >>> 0, 0);
  data.writeUInt32LE(machine, 4);
  for (const [index, value] of args.entries()) data.writeUInt32LE(value >>> 0, 16 + index * 8);
  let accumulator = 0;
  for (let at = 0; at < program.length / 8; at += 1) {
    const code = program.readUInt16LE(at * 8);
    const k = program.readUInt32LE(at * 8 + 4);
    const jump = (is_so: boolean) => program.readUInt8(at * 8 + (is_so ? 2 : 3));
    if (code === 0x06) return k;
    if (code === 0x20) accumulator = data.readUInt32LE(k);
    else if (code === 0x15) at += jump(accumulator === k);
    else if (code === 0x25) at += jump(accumulator > k);
    else if (code === 0x45) at += jump((accumulator & k) !== 0);
    else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error('the program has no end');
}
