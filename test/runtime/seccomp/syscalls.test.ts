import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CHECKED_SYSCALLS, DENIED_SYSCALLS } from '../../../src/runtime/seccomp/syscalls.ts';

const HEADERS = {
  x64: { path: '/usr/include/x86_64-linux-gnu/asm/unistd_64.h', line: /^#define __NR_(\w+) (\d+)/gm },
  arm64: { path: '/usr/include/asm-generic/unistd.h', line: /^#define __NR(?:3264)?_(\w+)\s+(\d+)/gm },
} as const;

it.for(['x64', 'arm64'] as const)(
  "the numbers for %s are those of the kernel's headers",
  (machine, { skip }) => {
    const { path, line } = HEADERS[machine];
    if (!existsSync(path)) skip(`there is no ${path}`);
    const numbers = new Map(
      [...readFileSync(path, 'utf8').matchAll(line)].map(([, name, number]) => [name, Number(number)]),
    );
    const listed = Object.entries({ ...CHECKED_SYSCALLS, ...DENIED_SYSCALLS });
    // Headers may be older than the list.
    const known = listed.filter(([name]) => numbers.has(name));
    expect(known.length).toBeGreaterThan(50);
    expect(known.map(([name, { [machine]: number }]) => [name, number])).toEqual(
      known.map(([name]) => [name, numbers.get(name)]),
    );
  },
);
