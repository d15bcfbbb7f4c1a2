import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FilteredMachine, seccompFilter } from '../../../src/runtime/seccomp/filter.ts';
import { CHECKED_SYSCALLS, DENIED_SYSCALLS, LAST_SYSCALL } from '../../../src/runtime/seccomp/syscalls.ts';
import { answerOf } from '../../support/runtime/bpf-machine.ts';

const ALLOWED = 0x7fff0000;
const NOT_PERMITTED = 0x00050001;
const NOT_IMPLEMENTED = 0x00050026;
const INVALID = 0x00050016;
const I386 = 0x40000003;

describe.each([
  ['x64', 0xc000003e],
  ['arm64', 0xc00000b7],
] as [FilteredMachine, number][])('the filter for %s', (name, machine) => {
  const program = seccompFilter(name) as Buffer;
  const answer = (number: number, ...args: number[]) => answerOf(program, { machine, number, args });
  const call = (syscall: keyof typeof CHECKED_SYSCALLS, ...args: number[]) =>
    answer(CHECKED_SYSCALLS[syscall][name], ...args);
  const denied = Object.entries(DENIED_SYSCALLS).flatMap(([syscall, { [name]: number }]) =>
    number === null ? [] : [{ syscall, number }],
  );
  const special = new Set<number>([
    ...denied.map(({ number }) => number),
    ...Object.values(CHECKED_SYSCALLS).map((numbers) => numbers[name]),
  ]);

  it('denies what a container without capabilities may not do', () => {
    expect(denied.length).toBeGreaterThan(45);
    expect(denied.filter(({ number }) => answer(number) !== NOT_PERMITTED)).toEqual([]);
  });

  it('allows every other call of the list, whatever its arguments, and implements no newer one', () => {
    const others = fc.nat(LAST_SYSCALL).filter((number) => !special.has(number));
    fc.assert(
      fc.property(others, fc.nat(0xffffffff), (number, argument) => answer(number, argument) === ALLOWED),
    );
    const newer = fc.integer({ min: LAST_SYSCALL + 1, max: 0xffffffff });
    fc.assert(fc.property(newer, (number) => answer(number) === NOT_IMPLEMENTED));
  });

  it('allows threads and processes, and no namespace', () => {
    expect(call('clone', 17)).toBe(ALLOWED);
    expect(call('clone', 0x3d0f00)).toBe(ALLOWED);
    expect(call('clone3')).toBe(NOT_IMPLEMENTED);
    expect(call('unshare', 0x400)).toBe(ALLOWED);
    for (const bit of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(call('clone', bit | 17)).toBe(NOT_PERMITTED);
      expect(call('unshare', bit | 0x400)).toBe(NOT_PERMITTED);
    }
    expect(call('unshare', 0x80)).toBe(NOT_PERMITTED);
  });

  it('has no filters for what is inside, as a kernel without them', () => {
    expect(call('prctl', 22, 2)).toBe(INVALID);
    expect(call('seccomp', 1, 0)).toBe(INVALID);
    for (const option of [26, 50, 51, 52]) expect(call('setsockopt', 5, 1, option)).toBe(NOT_PERMITTED);
    const values = fc.nat(0xffffffff);
    const others = fc.tuple(fc.nat(60), fc.nat(60), values);
    fc.assert(
      fc.property(others, ([one, two, three]) => {
        if (one !== 22 || two !== 2) expect(call('prctl', one, two, three)).toBe(ALLOWED);
        if (one !== 1) expect(call('seccomp', one, two, three)).toBe(ALLOWED);
        if (two !== 1 || ![26, 50, 51, 52].includes(three % 64))
          expect(call('setsockopt', one, two, three % 64)).toBe(ALLOWED);
      }),
    );
  });

  it('allows the plain personalities alone', () => {
    for (const value of [0, 8, 0x20000, 0x20008, 0xffffffff])
      expect(call('personality', value)).toBe(ALLOWED);
    const others = fc
      .nat(0xffffffff)
      .filter((value) => ![0, 8, 0x20000, 0x20008, 0xffffffff].includes(value));
    fc.assert(fc.property(others, (value) => call('personality', value) === NOT_PERMITTED));
  });

  it('allows the sockets of networks and of the machine, not those of its hypervisor', () => {
    for (const family of [1, 2, 10, 16]) expect(call('socket', family)).toBe(ALLOWED);
    expect(call('socket', 40)).toBe(NOT_PERMITTED);
  });

  it('implements no call of another machine, whose numbers mean something else', () => {
    const numbers = fc.nat(0xffffffff);
    fc.assert(
      fc.property(numbers, (number) => answerOf(program, { machine: I386, number }) === NOT_IMPLEMENTED),
    );
  });

  it('is short enough for the kernel', () => {
    expect(program.length / 8).toBeLessThan(4096);
  });
});

it('there is no filter for other machines', () => {
  expect(seccompFilter('riscv64')).toBeNull();
});
