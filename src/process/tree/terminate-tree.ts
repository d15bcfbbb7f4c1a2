import type { Clock, Timer } from '../../base/clock.ts';
import type { ProcStat } from './proc.ts';
import { isSameProcess } from './tree.ts';

/** How often a tree that was asked to end is looked at. */
const POLL_MS = 20;
/** A process that SIGKILL does not end within this is stuck in the kernel, and waiting longer does not help. */
const KILL_TIMEOUT_MS = 5_000;

/** One tree that is to be ended. */
export interface TerminationTarget {
  /** Its live members now. */
  members(): Promise<readonly ProcStat[]>;
  /** The number of the process group whose leader lives; null where the leader has ended. */
  group(): number | null;
  /** Called before a signal is sent. */
  onSignal(signal: NodeJS.Signals): void;
  /** Resolves when the leader has ended. */
  leader_ended: Promise<unknown>;
  /** Times the grace: a clock's, or one that stands still while everything is paused. */
  after(delay_ms: number, run: () => void): Timer;
  isPaused(): boolean;
}

/**
 * Ends a whole tree: SIGTERM, then, to those that are left after the grace, SIGKILL. Gives whether the tree is
 * empty; it is not where something cannot be killed.
 */
export async function terminateTree(
  clock: Clock,
  target: TerminationTarget,
  grace_ms: number,
): Promise<boolean> {
  let members = await target.members();
  if (members.length === 0) return true;
  target.onSignal('SIGTERM');
  signalAll(target.group(), members, 'SIGTERM');
  if (!target.isPaused()) wakeStopped(members);
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
  const until_ms = clock.monotonicMs() + KILL_TIMEOUT_MS;
  for (;;) {
    const members = await target.members();
    if (members.length === 0) return true;
    // Before the time is looked at: on a slow machine it may be over before anybody was sent a signal.
    signalAll(target.group(), members, 'SIGKILL');
    if (clock.monotonicMs() > until_ms) return false;
    await tick(clock);
  }
}

/** Who is stopped handles SIGTERM only when it goes on. */
function wakeStopped(members: readonly ProcStat[]): void {
  for (const stat of members) if (stat.state === 'T') signalProcess(stat, 'SIGCONT');
}

/** To the group as one, which also reaches who is being forked, and to each who has left it. */
function signalAll(group: number | null, members: readonly ProcStat[], signal: NodeJS.Signals): void {
  if (group !== null) trySignal(-group, signal);
  for (const stat of members) if (stat.group !== group) signalProcess(stat, signal);
}

/**
 * Sends a signal to the very process that was seen; false where it has gone. Node cannot hold a process by a
 * descriptor: between this look and the signal the kernel would have to end it, count through every other pid and
 * give its own out again.
 */
export function signalProcess(stat: ProcStat, signal: NodeJS.Signals): boolean {
  return isSameProcess(stat) && trySignal(stat.pid, signal);
}

/** Sends a signal; false where there is nobody to get it, or nobody who may be signalled. */
export function trySignal(pid: number, signal: NodeJS.Signals): boolean {
  if (Math.abs(pid) <= 1) return false; // these numbers mean everybody, our own group, and the sandbox's init
  try {
    return process.kill(pid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ESRCH' || code === 'EPERM') return false;
    throw error;
  }
}

function tick(clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.after(POLL_MS, resolve));
}
