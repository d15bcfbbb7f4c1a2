import { accessSync, constants, readFileSync } from 'node:fs';

const CAP_SETGID = 1n << 6n;

/**
 * Whether the kernel hides this process's memory from other processes of its user. It does if the process may change
 * its group, which `takeSecrets` does, or if `binary`, the program's file, can be executed but not read.
 */
export function isMemoryPrivate(binary = process.execPath): boolean {
  try {
    accessSync(binary, constants.R_OK);
  } catch {
    return true;
  }
  try {
    const [, set = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? [];
    return (BigInt(`0x${set}`) & CAP_SETGID) !== 0n;
  } catch {
    return process.getuid?.() === 0;
  }
}
