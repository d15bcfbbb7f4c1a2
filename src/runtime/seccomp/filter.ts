import {
  encodeProgram,
  type Instruction,
  JUMP_IF_ANY_BIT,
  JUMP_IF_EQUAL,
  JUMP_IF_GREATER,
  LOAD,
  RETURN,
  skipIf,
  skipUnless,
  statement,
} from './bpf.ts';
import { CHECKED_SYSCALLS, DENIED_SYSCALLS, LAST_SYSCALL, type SyscallNumbers } from './syscalls.ts';

/** The kinds of machine that there is a filter for. */
export type FilteredMachine = keyof SyscallNumbers;

/** Offsets in the data that a filter looks at; of arguments, their lower halves. Source: seccomp(2). */
const NUMBER_AT = 0;
const MACHINE_AT = 4;
const [FIRST_ARGUMENT_AT, SECOND_ARGUMENT_AT, THIRD_ARGUMENT_AT] = [16, 24, 32];
/** `AUDIT_ARCH_X86_64`, `AUDIT_ARCH_AARCH64`. */
const MACHINES: Record<FilteredMachine, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

const ALLOW = statement(RETURN, 0x7fff0000);
const NOT_PERMITTED = statement(RETURN, 0x00050000 | 1);
/** The answer of a kernel without filters of system calls, which programs that filter themselves go on without. */
const INVALID = statement(RETURN, 0x00050000 | 22);
/** With this answer the C library falls back to an older call; "not permitted" would end the program. */
const NOT_IMPLEMENTED = statement(RETURN, 0x00050000 | 38);

/** `CLONE_NEWNS`, `CGROUP`, `UTS`, `IPC`, `USER`, `PID`, `NET`. */
const NEW_NAMESPACE = 0x7e020000;
/** Only `unshare` knows it: for `clone` it is a part of the signal. */
const NEW_TIME_NAMESPACE = 0x80;
/** Linux, Linux 2.6 versions, 32 bits with 3 GiB, and the question which one it is. */
const PERSONALITIES = [0x0, 0x8, 0x20000, 0x20008, 0xffffffff];
/** `AF_VSOCK`: the hypervisor and the other machines on it. */
const VIRTUAL_MACHINE_SOCKETS = 40;

// The machine has one amount of memory for compiled filters, and no group is charged for them. Once it is used up, no other
// sandbox starts.
/** `PR_SET_SECCOMP` and `SECCOMP_MODE_FILTER`; `SECCOMP_SET_MODE_FILTER`. */
const [SET_MODE_OF_PROCESS, MODE_FILTER, SET_MODE_FILTER] = [22, 2, 1];
/** `SOL_SOCKET`, and `SO_ATTACH_FILTER`, `SO_ATTACH_BPF` and both `SO_ATTACH_REUSEPORT_…`. */
const SOCKET_LEVEL = 1;
const SOCKET_FILTERS = [26, 50, 51, 52];

/**
 * The filter of system calls for everything in a sandbox, as a program for `bwrap --seccomp`; null for a machine that
 * there is none for. Programs of another machine (32 bits), and calls that are newer than the list, are not implemented.
 */
export function seccompFilter(machine: string): Buffer | null {
  if (machine !== 'x64' && machine !== 'arm64') return null;
  return encodeProgram([
    statement(LOAD, MACHINE_AT),
    skipIf(JUMP_IF_EQUAL, MACHINES[machine], 1),
    NOT_IMPLEMENTED,
    statement(LOAD, NUMBER_AT),
    skipUnless(JUMP_IF_GREATER, LAST_SYSCALL, 1),
    NOT_IMPLEMENTED,
    ...ifEqual(CHECKED_SYSCALLS.clone3[machine], [NOT_IMPLEMENTED]),
    ...onArgument(CHECKED_SYSCALLS.clone[machine], deniedBits(NEW_NAMESPACE)),
    ...onArgument(CHECKED_SYSCALLS.unshare[machine], deniedBits(NEW_NAMESPACE | NEW_TIME_NAMESPACE)),
    ...onArgument(CHECKED_SYSCALLS.personality[machine], allowedValues(PERSONALITIES)),
    ...onArgument(CHECKED_SYSCALLS.socket[machine], deniedValue(VIRTUAL_MACHINE_SOCKETS)),
    ...onArgument(CHECKED_SYSCALLS.seccomp[machine], deniedValue(SET_MODE_FILTER, INVALID)),
    ...ifEqual(CHECKED_SYSCALLS.prctl[machine], [
      ...ifArgument(FIRST_ARGUMENT_AT, SET_MODE_OF_PROCESS, [
        statement(LOAD, SECOND_ARGUMENT_AT),
        ...deniedValue(MODE_FILTER, INVALID),
      ]),
      ALLOW,
    ]),
    ...ifEqual(CHECKED_SYSCALLS.setsockopt[machine], [
      ...ifArgument(SECOND_ARGUMENT_AT, SOCKET_LEVEL, [
        statement(LOAD, THIRD_ARGUMENT_AT),
        ...SOCKET_FILTERS.flatMap((option) => ifEqual(option, [NOT_PERMITTED])),
      ]),
      ALLOW,
    ]),
    ...Object.values(DENIED_SYSCALLS).flatMap(({ [machine]: number }) =>
      number === null ? [] : ifEqual(number, [NOT_PERMITTED]),
    ),
    ALLOW,
  ]);
}

/** Runs `then` only if the accumulator has this value. */
function ifEqual(number: number, then: Instruction[]): Instruction[] {
  return [skipUnless(JUMP_IF_EQUAL, number, then.length), ...then];
}

/** Runs `then` only if the argument has this value. */
function ifArgument(at: number, value: number, then: Instruction[]): Instruction[] {
  return [statement(LOAD, at), ...ifEqual(value, then)];
}

function onArgument(number: number, check: Instruction[]): Instruction[] {
  return ifEqual(number, [statement(LOAD, FIRST_ARGUMENT_AT), ...check]);
}

function deniedBits(bits: number): Instruction[] {
  return [skipUnless(JUMP_IF_ANY_BIT, bits, 1), NOT_PERMITTED, ALLOW];
}

function deniedValue(value: number, answer = NOT_PERMITTED): Instruction[] {
  return [...ifEqual(value, [answer]), ALLOW];
}

function allowedValues(values: number[]): Instruction[] {
  return [...values.flatMap((value) => ifEqual(value, [ALLOW])), NOT_PERMITTED];
}
