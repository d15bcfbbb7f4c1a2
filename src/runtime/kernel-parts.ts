import { readdirSync, statSync } from 'node:fs';

/** A part of `/proc` that is not about processes. */
export interface KernelPart {
  path: string;
  is_directory: boolean;
  /** Shown empty; otherwise read-only. */
  is_hidden: boolean;
}

/** What tells of the machine and of others on it: keys, memory, timers, addresses of the kernel. */
const HIDDEN = [
  ...['acpi', 'asound', 'config.gz', 'iomem', 'ioports', 'kallsyms', 'kcore', 'key-users', 'keys', 'kmsg'],
  ...['kpagecgroup', 'kpagecount', 'kpageflags', 'latency_stats', 'sched_debug', 'scsi', 'slabinfo'],
  ...['timer_list', 'timer_stats', 'vmallocinfo'],
];
/** Everything in it is read-only, and it shows pids as seen by the mount that it is bound from. */
const LEFT = ['sysvipc'];
const WRITE_BITS = 0o222;

/**
 * What of the kernel's own tables a sandbox may not write, or not see. The kernel grants writing by the user alone,
 * without any capability, and a sandbox's user is the manager's: root would set `kernel.core_pattern` for the host.
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
