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

/** Offsets in the data that a filter looks at; the first argument's lower half. Source: seccomp(2). */
const NUMBER_AT = 0;
const MACHINE_AT = 4;
const FIRST_ARGUMENT_AT = 16;
/** `AUDIT_ARCH_X86_64`, `AUDIT_ARCH_AARCH64`. */
const MACHINES: Record<FilteredMachine, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

const ALLOW = statement(RETURN, 0x7fff0000);
const NOT_PERMITTED = statement(RETURN, 0x00050000 | 1);
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
    ...onCall(CHECKED_SYSCALLS.clone3[machine], [NOT_IMPLEMENTED]),
    ...onArgument(CHECKED_SYSCALLS.clone[machine], deniedBits(NEW_NAMESPACE)),
    ...onArgument(CHECKED_SYSCALLS.unshare[machine], deniedBits(NEW_NAMESPACE | NEW_TIME_NAMESPACE)),
    ...onArgument(CHECKED_SYSCALLS.personality[machine], allowedValues(PERSONALITIES)),
    ...onArgument(CHECKED_SYSCALLS.socket[machine], deniedValue(VIRTUAL_MACHINE_SOCKETS)),
    ...Object.values(DENIED_SYSCALLS).flatMap(({ [machine]: number }) =>
      number === null ? [] : onCall(number, [NOT_PERMITTED]),
    ),
    ALLOW,
  ]);
}

function onCall(number: number, then: Instruction[]): Instruction[] {
  return [skipUnless(JUMP_IF_EQUAL, number, then.length), ...then];
}

function onArgument(number: number, check: Instruction[]): Instruction[] {
  return onCall(number, [statement(LOAD, FIRST_ARGUMENT_AT), ...check]);
}

function deniedBits(bits: number): Instruction[] {
  return [skipUnless(JUMP_IF_ANY_BIT, bits, 1), NOT_PERMITTED, ALLOW];
}

function deniedValue(value: number): Instruction[] {
  return [skipUnless(JUMP_IF_EQUAL, value, 1), NOT_PERMITTED, ALLOW];
}

function allowedValues(values: number[]): Instruction[] {
  return [...values.flatMap((value) => [skipUnless(JUMP_IF_EQUAL, value, 1), ALLOW]), NOT_PERMITTED];
}
