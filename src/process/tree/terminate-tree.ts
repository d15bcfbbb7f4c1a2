import { type Clock, runTime, type Timer } from '../../base/clock.ts';
import type { ProcStat } from '../../base/linux/procfs.ts';
import { signalNumber } from '../../base/linux/signals.ts';

/** How often a tree that is being ended is checked. */
const POLL_MS = 20;
/** A process that SIGKILL does not end within this is stuck in the kernel, and waiting longer does not help. */
const KILL_TIMEOUT_MS = 5_000;

/** A tree that is to be ended. */
export interface TerminationTarget {
  /** Its live members now. */
  members(): Promise<readonly ProcStat[]>;
  /** Which of these very processes still exist. */
  stillThere(stats: readonly ProcStat[]): Promise<readonly ProcStat[]>;
  /** The process group of the tree's leader; null if the leader has ended. */
  group(): number | null;
  /** Called before a signal is sent. */
  onSignal(signal: NodeJS.Signals): void;
  /** Resolves when the leader has ended. */
  leader_ended: Promise<unknown>;
  /** Measures the grace: a clock's timer, or one that is paused with the processes. */
  after(delay_ms: number, run: () => void): Timer;
  /** Whether the processes are paused, so that stopped members are not woken. */
  isPaused(): boolean;
}

/**
 * Ends a whole tree: SIGTERM, then SIGKILL to the members that are left after `grace_ms`. Returns whether the tree is
 * empty; false means that a member is stuck in the kernel.
 */
export async function terminateTree(
  clock: Clock,
  target: TerminationTarget,
  grace_ms: number,
): Promise<boolean> {
  let members = await target.members();
  if (members.length === 0) return true;
  target.onSignal('SIGTERM');
  await signalAll(target, members, 'SIGTERM');
  let is_over = false;
  const over = Promise.withResolvers<void>();
  const grace = target.after(grace_ms, () => {
    is_over = true;
    over.resolve();
  });
  members = await target.members();
  while (members.length > 0 && !is_over) {
    await Promise.race([
      tick(clock),
      over.promise,
      target.group() === null ? tick(clock) : target.leader_ended,
    ]);
    members = await target.members();
  }
  grace.cancel();
  return members.length === 0 || killTree(clock, target);
}

async function killTree(clock: Clock, target: TerminationTarget): Promise<boolean> {
  target.onSignal('SIGKILL');
  const until_ms = runTime(clock).monotonicMs() + KILL_TIMEOUT_MS;
  for (;;) {
    const members = await target.members();
    if (members.length === 0) return true;
    // Signalled before the time is checked: on a slow machine it may be over before the first signal.
    await signalAll(target, members, 'SIGKILL');
    if (runTime(clock).monotonicMs() > until_ms) return false;
    await tick(clock);
  }
}

/**
 * Signals the group as one, which also reaches a process that is being forked, and each member outside the group. Node has no
 * process descriptors, but for a wrong target the kernel would have to end the process and reuse its pid, after all others,
 * between the check and the signal.
 */
async function signalAll(
  target: TerminationTarget,
  members: readonly ProcStat[],
  signal: NodeJS.Signals,
): Promise<void> {
  const there = await target.stillThere(members);
  const group = target.group();
  if (group !== null) trySignal(-group, signal);
  for (const stat of there) if (stat.group !== group) trySignal(stat.pid, signal);
  if (signal === 'SIGKILL' || target.isPaused()) return;
  // A stopped process handles SIGTERM only once it is resumed.
  for (const { pid, state } of there) if (state === 'T') trySignal(pid, 'SIGCONT');
}

/** Sends a signal, by name, to a pid or a group (negative); false if there is none, or it may not be signalled. */
export function trySignal(pid: number, signal: string): boolean {
  if (Math.abs(pid) <= 1) return false; // these mean every process, the daemon's own group, and the init process
  try {
    return process.kill(pid, signalNumber(signal) ?? signal); // by name Node knows no real-time signal
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ESRCH' || code === 'EPERM') return false;
    throw error;
  }
}

function tick(clock: Clock): Promise<void> {
  return new Promise((resolve) => runTime(clock).after(POLL_MS, resolve));
}
