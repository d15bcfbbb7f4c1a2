import { CLOCK_TICK_MS, PAGE_BYTES, type ProcStat } from '../../base/linux/procfs.ts';
import type { ResourceUsage } from '../../contract/field.ts';

/** The usage of no process at all. */
export const NO_USAGE: ResourceUsage = { cpu_ms: 0, memory_bytes: 0, processes: 0 };

/** What live processes use together, including the CPU time of children that they waited for. */
export function usageOf(members: readonly ProcStat[]): ResourceUsage {
  let ticks = 0;
  let pages = 0;
  for (const { cpu_ticks, children_ticks, memory_pages } of members) {
    ticks += cpu_ticks + children_ticks;
    pages += memory_pages;
  }
  return { cpu_ms: ticks * CLOCK_TICK_MS, memory_bytes: pages * PAGE_BYTES, processes: members.length };
}

/** The sum of several usages. */
export function sumUsage(usages: readonly ResourceUsage[]): ResourceUsage {
  return usages.reduce(
    (sum, usage) => ({
      cpu_ms: sum.cpu_ms + usage.cpu_ms,
      memory_bytes: sum.memory_bytes + usage.memory_bytes,
      processes: sum.processes + usage.processes,
    }),
    NO_USAGE,
  );
}
