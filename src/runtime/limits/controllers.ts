import type { Hierarchy } from '../../base/linux/cgroup.ts';

/** Limits of one sandbox: MiB, and thousandths of a core. */
export interface ResourceLimits {
  memory_mib: number;
  cpu_millis: number;
}

/** The controllers that hold a sandbox to its limits. */
export const CONTROLLERS = ['memory', 'cpu', 'pids'] as const;
/** A controller that holds a sandbox to a limit. */
export type Controller = (typeof CONTROLLERS)[number];

const MIB = 1024 * 1024;
const CPU_PERIOD_US = 100_000;
/** The kernel takes no smaller share of a period. */
const CPU_QUOTA_MIN_US = 1_000;

/**
 * The files of a group, each with what is written to it, in order, so that a sandbox's limits hold. Source: cgroups(7);
 * the kernel's cgroup-v1 and cgroup-v2 documents.
 */
export function limitFiles(
  controller: Exclude<Controller, 'pids'>,
  version: Hierarchy['version'],
  { memory_mib, cpu_millis }: ResourceLimits,
): [file: string, content: string][] {
  if (controller === 'memory') {
    return [[version === 1 ? 'memory.limit_in_bytes' : 'memory.max', String(memory_mib * MIB)]];
  }
  const quota_us = Math.max(CPU_QUOTA_MIN_US, Math.round((cpu_millis * CPU_PERIOD_US) / 1000));
  if (version === 2) return [['cpu.max', `${quota_us} ${CPU_PERIOD_US}`]];
  return [
    ['cpu.cfs_period_us', String(CPU_PERIOD_US)],
    ['cpu.cfs_quota_us', String(quota_us)],
  ];
}
