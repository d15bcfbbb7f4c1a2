import { readdirSync, statSync } from 'node:fs';

/** A path below `/proc` that is not about processes. */
export interface KernelPart {
  path: string;
  is_directory: boolean;
  /** True: shown empty; false: read-only. */
  is_hidden: boolean;
}

/** What reveals the machine and other users: keys, memory, timers, kernel addresses. */
const HIDDEN = [
  ...['acpi', 'asound', 'config.gz', 'iomem', 'ioports', 'kallsyms', 'kcore', 'key-users', 'keys', 'kmsg'],
  ...['kpagecgroup', 'kpagecount', 'kpageflags', 'latency_stats', 'sched_debug', 'scsi', 'slabinfo'],
  ...['timer_list', 'timer_stats', 'vmallocinfo'],
];
/** Left alone: everything in it is read-only, and a bind mount would show pids of the host. */
const LEFT = ['sysvipc'];
const WRITE_BITS = 0o222;

/**
 * The kernel tables that a sandbox must not write or see. The kernel checks the user alone, not capabilities, and a
 * sandbox's user is the manager's: as root it could set `kernel.core_pattern` for the host.
 */
export function kernelParts(): KernelPart[] {
  return readdirSync('/proc', { withFileTypes: true }).flatMap((entry): KernelPart[] => {
    const path = `/proc/${entry.name}`;
    if (/^\d/.test(entry.name) || entry.isSymbolicLink() || LEFT.includes(entry.name)) return [];
    const is_directory = entry.isDirectory();
    if (HIDDEN.includes(entry.name)) return [{ path, is_directory, is_hidden: true }];
    const is_writable = is_directory || (statSync(path).mode & WRITE_BITS) !== 0;
    return is_writable ? [{ path, is_directory, is_hidden: false }] : [];
  });
}
