import { readdirSync, readFileSync } from 'node:fs';
import { sleepMs } from './numbers.ts';

/** The kernel's unit of the times below; fixed for user space. */
const TICK_MS = 10;
const SAMPLE_MS = 20;

/** The CPU time of a process since it began, in ms. */
export function cpuMs(pid: number): number {
  const fields = statOf(pid);
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** The CPU time of what this process has started and waited for, in ms. */
export function childrenCpuMs(): number {
  const fields = statOf(process.pid);
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
}

/** From the third field on. */
function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** Resident memory, in bytes. */
export function memoryBytes(pid: number): number {
  return Number(field(`/proc/${pid}/status`, 'VmRSS')) * 1024;
}

/** How often the threads of a process went from waiting to running. */
export function wakeUps(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce(
    (sum, thread) => sum + Number(field(`/proc/${pid}/task/${thread}/status`, 'voluntary_ctxt_switches')),
    0,
  );
}

function field(path: string, name: string): string {
  return new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(path, 'latin1'))?.[1] ?? '0';
}

/** How many files a process holds open. */
export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** How many inotify watches a process holds. */
export function inotifyWatches(pid: number): number {
  const infos = readdirSync(`/proc/${pid}/fdinfo`).map((fd) => readOrNothing(`/proc/${pid}/fdinfo/${fd}`));
  return infos.reduce((sum, info) => sum + (info.match(/^inotify wd:/gm)?.length ?? 0), 0);
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // it was closed meanwhile
  }
}

/** Its children that have ended and were not waited for. */
export function zombies(pid: number): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((each) => isZombieOf(each, pid)).length;
}

function isZombieOf(pid: string, parent: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' && Number(ppid) === parent;
  } catch {
    return false; // it has gone meanwhile
  }
}

/** The highest value until `end` settles. */
export async function highest(end: Promise<unknown>, sample: () => number): Promise<number> {
  let most = sample();
  let is_over = false;
  const over = end.finally(() => {
    is_over = true;
  });
  while (!is_over) {
    most = Math.max(most, sample());
    await Promise.race([over, sleepMs(SAMPLE_MS)]);
  }
  return most;
}
