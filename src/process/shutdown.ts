import { type Clock, sleep } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { OutputCopies } from './output/copies.ts';
import type { SupervisedProcess } from './process.ts';
import { terminateTree } from './tree/terminate-tree.ts';
import type { TreeFinder } from './tree/tree.ts';

/** What a shutdown works with. */
export interface ShutdownContext {
  clock: Clock;
  log: Log;
  trees: TreeFinder;
  /** From SIGTERM to SIGKILL, and the longest wait for the last events. */
  grace_ms: number;
}

/** Ends everything, and resolves when the ends are stored, or kept for the next daemon, and all output is copied. */
export async function endAll(
  context: ShutdownContext,
  processes: readonly SupervisedProcess[],
  copies: OutputCopies,
): Promise<void> {
  await terminateAll(context, processes);
  await flushEvents(context, processes);
  await copies.allFinished();
  await Promise.allSettled(processes.map((process) => process.close()));
}

/** Ends every tree, SIGTERM first, then every other process of the sandbox. Logs what does not end; never rejects. */
async function terminateAll(
  context: ShutdownContext,
  processes: readonly SupervisedProcess[],
): Promise<void> {
  const { grace_ms, trees, log } = context;
  const members = await trees.find(processes.map(({ root }) => root)).catch(() => []);
  const ends = processes.map(async (process, index) => {
    if (process.record.is_final && members[index]?.length === 0) return;
    await process.terminate(grace_ms);
  });
  for (const end of await Promise.allSettled(ends)) {
    if (end.status === 'rejected') log.warn({ err: end.reason }, 'a process did not end');
  }
  await terminateStrays(context);
}

/**
 * Resolves when the events of all processes are stored, or after the grace: what is not stored by then stays in the
 * records, and the next daemon emits it.
 */
async function flushEvents(
  { clock, grace_ms }: ShutdownContext,
  processes: readonly SupervisedProcess[],
): Promise<void> {
  const over = new AbortController();
  const flushed = Promise.all(processes.map((process) => process.flushEvents()));
  await Promise.race([flushed, sleep(clock, grace_ms, over.signal)]);
  over.abort();
}

/** Ends processes of the sandbox that belong to no tree. They are known only if the sandbox has its own table. */
async function terminateStrays({ clock, log, trees, grace_ms }: ShutdownContext): Promise<void> {
  const target = {
    members: () => trees.findAll([]),
    group: () => null,
    onSignal: () => {},
    leader_ended: Promise.resolve(),
    after: (delay_ms: number, run: () => void) => clock.after(delay_ms, run),
    isPaused: () => false,
  };
  const is_empty = await terminateTree(clock, target, grace_ms).catch(() => false);
  if (!is_empty) log.warn('some processes of the sandbox are still running');
}
