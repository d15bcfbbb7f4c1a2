import { createHash } from 'node:crypto';
import { type Clock, runTime, sleep, systemClock } from '../../base/clock.ts';
import { ProcessTable } from '../../base/linux/process-table.ts';
import { isZombie, readBootId } from '../../base/linux/procfs.ts';

/** Identifies a process even if its pid is reused. */
export interface ProcessIdentity {
  pid: number;
  /** Ticks after boot at which it began. */
  start_ticks: number;
  boot_id: string;
}

/** The environment variable by which a sandbox's processes are found, even if its record is missing. */
export const SANDBOX_MARK_VARIABLE = 'SANDBOX_MARK';

const POLL_MS = 10;
/** A process that SIGKILL does not end within this is stuck in the kernel. */
const KILL_TIMEOUT_MS = 10_000;

/** The machine's process table; its variable is the sandboxes' mark. */
export const host_table = new ProcessTable(systemClock, SANDBOX_MARK_VARIABLE);

/** The mark of a sandbox's directory: a hash, because its processes can read it and must not see the host's path. */
export function markOf(directory: string): string {
  return createHash('sha256').update(directory).digest('hex');
}

/** The identity of the process with this pid, or null if there is none. */
export async function identify(pid: number): Promise<ProcessIdentity | null> {
  const [stat = null] = await host_table.read([pid]);
  return stat && { pid, start_ticks: stat.start_ticks, boot_id: readBootId() };
}

/**
 * Whether a process is still running; a zombie is not. When the kernel does not say when it began, because a process of
 * some sandbox holds up whoever asks, one with its pid is taken for it: nothing is lost for want of an answer.
 */
export async function isProcessAlive(process: ProcessIdentity): Promise<boolean> {
  const [stat] = await host_table.read([process.pid]);
  if (!stat || isZombie(stat) || process.boot_id !== readBootId()) return false;
  return [stat.start_ticks, 0].includes(process.start_ticks) || stat.start_ticks === 0;
}

/** Resolves with true once a process has ended, with false after `within_ms`. */
export async function waitForExit(
  clock: Clock,
  process: ProcessIdentity,
  within_ms: number,
): Promise<boolean> {
  const until_ms = runTime(clock).monotonicMs() + within_ms;
  while (await isProcessAlive(process)) {
    if (runTime(clock).monotonicMs() >= until_ms) return false;
    await sleep(runTime(clock), POLL_MS);
  }
  return true;
}

/** The pids of a process's living children. */
export async function childrenOf(pid: number): Promise<number[]> {
  const stats = [...(await host_table.readAll()).values()];
  return stats.filter((stat) => stat.parent === pid && !isZombie(stat)).map((stat) => stat.pid);
}

/**
 * Kills every process with a sandbox's mark, and their children; with the first process of a pid namespace the kernel
 * kills all others. Resolves when none is left; throws if one cannot be killed within 10 s.
 */
export async function killMarked(clock: Clock, directory: string): Promise<void> {
  const until_ms = runTime(clock).monotonicMs() + KILL_TIMEOUT_MS;
  for (;;) {
    const pids = await findMarked(directory);
    if (pids.length === 0) return;
    for (const pid of pids) kill(pid);
    if (runTime(clock).monotonicMs() > until_ms) throw new Error(`process ${pids[0]} cannot be killed`);
    await sleep(runTime(clock), POLL_MS);
  }
}

async function findMarked(directory: string): Promise<number[]> {
  const stats = [...(await host_table.readAll()).values()];
  const running = stats.filter((stat) => stat.pid !== process.pid && !isZombie(stat));
  const marks = await host_table.variables(running.map(({ pid }) => pid));
  const mark = markOf(directory);
  const marked = new Set(running.filter((_, index) => marks[index] === mark).map(({ pid }) => pid));
  const children = running.filter(({ parent }) => marked.has(parent)).map(({ pid }) => pid);
  return [...new Set([...marked, ...children])];
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
