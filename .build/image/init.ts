/**
 * The init of a sandbox whose root persists, in machine code: `init PID` reaps whatever ends, passes signals on to the child
 * PID, and ends when that does, with its exit code. It needs nothing of the root that it runs on, which is the sandbox's.
 */
const CODE: Record<string, string[]> = {
  x64: [
    // _start: the daemon's process id, in decimal
    '488b742410', // mov rsi,[rsp+0x10]
    '31db', // xor ebx,ebx
    // digit:
    '0fb606', // movzx eax,[rsi]
    '83e830', // sub eax,0x30
    '720a', // jb parsed
    '6bdb0a', // imul ebx,ebx,0xa
    '01c3', // add ebx,eax
    '48ffc6', // inc rsi
    'ebee', // jmp digit
    // parsed: every signal waits to be asked for
    '6aff', // push 0xffffffffffffffff
    '4889e5', // mov rbp,rsp
    '6a02', // push 0x2
    '5f', // pop rdi
    '4889ee', // mov rsi,rbp
    '31d2', // xor edx,edx
    '6a08', // push 0x8
    '415a', // pop r10
    '6a0e', // push 0xe
    '58', // pop rax
    '0f05', // syscall
    '6a00', // push 0x0
    // reap: wait4(-1, &status, WNOHANG, 0)
    '4883cfff', // or rdi,0xffffffffffffffff
    '4889e6', // mov rsi,rsp
    '6a01', // push 0x1
    '5a', // pop rdx
    '4531d2', // xor r10d,r10d
    '6a3d', // push 0x3d
    '58', // pop rax
    '0f05', // syscall
    '85c0', // test eax,eax
    '742d', // je wait
    '7821', // js gone
    '39d8', // cmp eax,ebx
    '75e4', // jne reap
    '8b3c24', // mov edi,[rsp]
    '89f8', // mov eax,edi
    '83e07f', // and eax,0x7f
    '7408', // je exited
    '8db880000000', // lea edi,[rax+0x80]
    'eb0e', // jmp leave
    // exited:
    'c1ef08', // shr edi,0x8
    '81e7ff000000', // and edi,0xff
    'eb03', // jmp leave
    // gone: nothing is left to wait for
    '6a01', // push 0x1
    '5f', // pop rdi
    // leave: exit_group
    'b8e7000000', // mov eax,0xe7
    '0f05', // syscall
    // wait: rt_sigtimedwait; SIGCHLD is 17; every other one goes to the daemon
    '4889ef', // mov rdi,rbp
    '31f6', // xor esi,esi
    '31d2', // xor edx,edx
    '6a08', // push 0x8
    '415a', // pop r10
    'b880000000', // mov eax,0x80
    '0f05', // syscall
    '85c0', // test eax,eax
    '7eea', // jle wait
    '83f811', // cmp eax,0x11
    '74a2', // je reap
    '89df', // mov edi,ebx
    '89c6', // mov esi,eax
    '6a3e', // push 0x3e
    '58', // pop rax
    '0f05', // syscall
    'ebda', // jmp wait
  ],
  arm64: [
    // _start: the daemon's process id, in decimal
    'e10b40f9', // ldr x1, [sp, #16]
    '13008052', // mov w19, #0
    '43018052', // mov w3, #10
    // digit:
    '20144038', // ldrb w0, [x1], #1
    '00c00071', // subs w0, w0, #48
    '63000054', // b.lo parsed
    '7302031b', // madd w19, w19, w3, w0
    'fcffff17', // b digit
    // parsed: every signal waits to be asked for
    '00008092', // mov x0, #-1
    'ff4300d1', // sub sp, sp, #16
    'e00300f9', // str x0, [sp]
    'f4030091', // mov x20, sp
    '95220091', // add x21, x20, #8
    '400080d2', // mov x0, #2
    'e10314aa', // mov x1, x20
    '020080d2', // mov x2, #0
    '030180d2', // mov x3, #8
    'e81080d2', // mov x8, #135
    '010000d4', // svc #0
    // reap: wait4(-1, &status, WNOHANG, 0)
    '00008092', // mov x0, #-1
    'e10315aa', // mov x1, x21
    '220080d2', // mov x2, #1
    '030080d2', // mov x3, #0
    '882080d2', // mov x8, #260
    '010000d4', // svc #0
    '1f000071', // cmp w0, #0
    'c0010054', // b.eq wait
    '4b010054', // b.lt gone
    '1f00136b', // cmp w0, w19
    'c1feff54', // b.ne reap
    'a00240b9', // ldr w0, [x21]
    '01180072', // ands w1, w0, #0x7f
    '60000054', // b.eq exited
    '20000211', // add w0, w1, #128
    '04000014', // b leave
    // exited:
    '003c0853', // ubfx w0, w0, #8, #8
    '02000014', // b leave
    // gone: nothing is left to wait for
    '20008052', // mov w0, #1
    // leave: exit_group
    'c80b80d2', // mov x8, #94
    '010000d4', // svc #0
    // wait: rt_sigtimedwait; SIGCHLD is 17; every other one goes to the daemon
    'e00314aa', // mov x0, x20
    '010080d2', // mov x1, #0
    '020080d2', // mov x2, #0
    '030180d2', // mov x3, #8
    '281180d2', // mov x8, #137
    '010000d4', // svc #0
    '1f000071', // cmp w0, #0
    '2dffff54', // b.le wait
    '1f440071', // cmp w0, #17
    '40fcff54', // b.eq reap
    'e103002a', // mov w1, w0
    'e003132a', // mov w0, w19
    '281080d2', // mov x8, #129
    '010000d4', // svc #0
    'f2ffff17', // b wait
  ],
};

/** Numbers of the machines in an ELF header: EM_X86_64, EM_AARCH64. */
const MACHINES: Record<string, number> = { x64: 62, arm64: 183 };

const ADDRESS = 0x400000;
const HEADER_BYTES = 64;
const SEGMENT_BYTES = 56;
const PAGE_BYTES = 65_536;

/** The program as a static ELF file of one segment. Throws if `arch` is not supported. */
export function initProgram(arch: string): Buffer {
  const [code, machine] = [CODE[arch], MACHINES[arch]];
  if (code === undefined || machine === undefined) throw new Error(`${arch} is not supported`);
  const text = Buffer.from(code.join(''), 'hex');
  const start = HEADER_BYTES + SEGMENT_BYTES;
  const file = Buffer.alloc(start + text.length);
  file.write('7f454c46020101', 'hex'); // 64 bits, little-endian, version 1
  file.writeUInt16LE(2, 16); // ET_EXEC
  file.writeUInt16LE(machine, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(BigInt(ADDRESS + start), 24);
  file.writeBigUInt64LE(BigInt(HEADER_BYTES), 32);
  file.writeUInt16LE(HEADER_BYTES, 52);
  file.writeUInt16LE(SEGMENT_BYTES, 54);
  file.writeUInt16LE(1, 56);
  file.writeUInt32LE(1, 64); // PT_LOAD
  file.writeUInt32LE(5, 68); // read, execute
  file.writeBigUInt64LE(BigInt(ADDRESS), 80);
  file.writeBigUInt64LE(BigInt(ADDRESS), 88);
  file.writeBigUInt64LE(BigInt(file.length), 96);
  file.writeBigUInt64LE(BigInt(file.length), 104);
  file.writeBigUInt64LE(BigInt(PAGE_BYTES), 112);
  text.copy(file, start);
  return file;
}
