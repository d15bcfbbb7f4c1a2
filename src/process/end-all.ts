import { atMost, type Clock, runTime } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { SupervisedProcess } from './process.ts';
import { terminateTree } from './tree/terminate-tree.ts';
import type { TreeFinder } from './tree/tree.ts';

/** What the end of all processes needs. */
export interface EndAllParts {
  clock: Clock;
  log: Log;
  /** From SIGTERM to SIGKILL, and the longest wait for the last events. */
  grace_ms: number;
}

/**
 * Ends these processes and whatever else belongs to the sandbox, SIGTERM first. Resolves when their events are stored, or
 * after the grace: what is not stored by then stays in the records, and the next daemon emits it. Never rejects.
 */
export async function endAll(
  parts: EndAllParts,
  trees: TreeFinder,
  processes: readonly SupervisedProcess[],
): Promise<void> {
  await terminateAll(parts, trees, processes);
  await terminateStrays(parts, trees);
  await flushEvents(parts, processes);
}

async function terminateAll(
  { grace_ms, log }: EndAllParts,
  trees: TreeFinder,
  processes: readonly SupervisedProcess[],
): Promise<void> {
  const members = await trees.find(processes.map(({ root }) => root)).catch(() => []);
  const ends = processes.map(async (process, index) => {
    if (process.record.is_final && members[index]?.length === 0) return;
    await process.terminate(grace_ms);
  });
  for (const end of await Promise.allSettled(ends)) {
    if (end.status === 'rejected') log.warn({ err: end.reason }, 'a process did not end');
  }
}

/** Ends processes of the sandbox that belong to no tree. They are known only if the sandbox has its own table. */
async function terminateStrays({ clock, log, grace_ms }: EndAllParts, trees: TreeFinder): Promise<void> {
  const target = {
    members: () => trees.findAll([]),
    stillThere: trees.stillThere,
    group: () => null,
    onSignal: () => {},
    leader_ended: Promise.resolve(),
    after: (delay_ms: number, run: () => void) => runTime(clock).after(delay_ms, run),
    isPaused: () => false,
  };
  const is_empty = await terminateTree(clock, target, grace_ms).catch(() => false);
  if (!is_empty) log.warn('some processes of the sandbox are still running');
}

async function flushEvents(
  { clock, grace_ms }: EndAllParts,
  processes: readonly SupervisedProcess[],
): Promise<void> {
  const flushed = Promise.all(processes.map((process) => process.flushEvents()));
  await atMost(runTime(clock), grace_ms, flushed);
}
