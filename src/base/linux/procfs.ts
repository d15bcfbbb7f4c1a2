import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { uptime } from 'node:os';
import { ApiError } from '../../contract/errors.ts';

/** One process of the kernel's process table, from /proc/<pid>/stat: proc_pid_stat(5). */
export interface ProcStat {
  pid: number;
  parent: number;
  group: number;
  session: number;
  /** One letter: R, S, D, T (stopped), Z (ended, not yet waited for), … */
  state: string;
  cpu_ticks: number;
  /** CPU time of children that have ended and were waited for. */
  children_ticks: number;
  /** Ticks since boot. Together with the pid it identifies a process until the next boot; 0 if it is unknown. */
  start_ticks: number;
  memory_pages: number;
}

/**
 * Whether a process is one of a daemon's own helpers, which belong to no sandbox: a child of it in its own session. Whatever
 * else it starts is in a session of its own.
 */
export function isHelper(stat: Pick<ProcStat, 'parent' | 'session'>, daemon: ProcStat): boolean {
  return stat.parent === daemon.pid && stat.session === daemon.session;
}

/** Length of a clock tick, the unit of the times in /proc/<pid>/stat, on every Linux that Node runs on. */
export const CLOCK_TICK_MS = 10;
/** Size of a memory page. */
export const PAGE_BYTES = 4096;

/** More than a line of /proc/<pid>/stat takes. The kernel gives it whole. */
const stat_buffer = Buffer.alloc(PAGE_BYTES);
/** The errors that say that there is no such process. Any other says nothing of it: it could not be read. */
const GONE = new Set(['ENOENT', 'ESRCH']);

/** The current time in ticks since boot, the unit of `start_ticks`. */
export function bootTicks(): number {
  return Math.round((uptime() * 1_000) / CLOCK_TICK_MS);
}

/** Whether a process has ended and only waits to be reaped. */
export function isZombie({ state }: ProcStat): boolean {
  return state === 'Z' || state === 'X';
}

/**
 * The process with this pid, or null if there is none: for this program's own, which do not make it wait, as a sandbox's may.
 * Throws `too_many_requests` if that cannot be read now.
 */
export function readStatNow(pid: number): ProcStat | null {
  let file: number | null = null;
  try {
    file = openSync(`/proc/${pid}/stat`, 'r');
    return parseStat(stat_buffer.toString('latin1', 0, readSync(file, stat_buffer)));
  } catch (error) {
    return ifGone(error);
  } finally {
    if (file !== null) closeSync(file);
  }
}

function ifGone(error: unknown): null {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (GONE.has(code)) return null;
  throw new ApiError(
    'too_many_requests',
    `The process table cannot be read right now (${code}). Try again later.`,
  );
}

/** The pids of all visible processes. Throws `too_many_requests` if the table cannot be read now. */
export async function readPids(): Promise<number[]> {
  return ((await readdir('/proc').catch(ifGone)) ?? []).filter(isPid).map(Number);
}

function isPid(name: string): boolean {
  return /^\d+$/.test(name);
}

/**
 * The process with this pid by its /proc/<pid>/status, which waits for nobody, as `stat` may: without its start and its CPU
 * time. Null if there is none; throws `too_many_requests` if that cannot be read now.
 */
export function readStatus(pid: number): ProcStat | null {
  const text = statusOf(pid) ?? '';
  const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(text)?.[1];
  // The last of several is that in the innermost namespace.
  const innermost = (name: string) => Number(new RegExp(`^${name}:.*?(\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  const state = field('State');
  if (state === undefined) return null;
  return {
    pid,
    state,
    parent: Number(field('PPid') ?? 0),
    group: innermost('NSpgid'),
    session: innermost('NSsid'),
    cpu_ticks: 0,
    children_ticks: 0,
    start_ticks: 0,
    memory_pages: Math.round((Number(field('VmRSS') ?? 0) * 1_024) / PAGE_BYTES),
  };
}

function statusOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/status`, 'latin1');
  } catch (error) {
    return ifGone(error);
  }
}

/** The name of a process's program, at most 15 bytes; empty if it cannot be read. */
export function readProgramName(pid: number): string {
  return or('', () => readFileSync(`/proc/${pid}/comm`, 'latin1')).trim();
}

/** The pid of a process that has the socket with this inode open; null if this user cannot see one. */
export function findSocketHolder(inodes: ReadonlySet<string>): number | null {
  const links = new Set([...inodes].map((inode) => `socket:[${inode}]`));
  const pids = readdirSync('/proc').filter(isPid).map(Number);
  return pids.find((pid) => openFiles(pid).some((link) => links.has(link))) ?? null;
}

function openFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return or([], () => readdirSync(folder)).map((fd) => or('', () => readlinkSync(`${folder}/${fd}`)));
}

/** Skips what cannot be read: it belongs to another user, or has just ended. */
function or<T>(otherwise: T, read: () => T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** The id of this boot of the machine; empty if it cannot be read. */
export function readBootId(): string {
  return readKernelSetting('kernel/random/boot_id');
}

/** The pid namespace of this process, as `pid:[<inode>]`. Throws the system's error. */
export function readPidNamespace(): string {
  return readlinkSync('/proc/self/ns/pid');
}

/** A file below /proc/sys, such as `kernel/pid_max`, without the end of its line; empty if it cannot be read. */
export function readKernelSetting(name: string): string {
  return or('', () => readFileSync(`/proc/sys/${name}`, 'latin1')).trim();
}

/** Reads a line of /proc/<pid>/stat; the name, in parentheses, may hold anything. */
export function parseStat(text: string): ProcStat | null {
  const name_end = text.lastIndexOf(')');
  const pid = Number.parseInt(text, 10);
  const fields = text.slice(name_end + 2).split(' ');
  if (name_end < 0 || fields.length < 22) return null;
  const field = (number: number) => Number(fields[number - 3]); // the first after the name is field 3
  return {
    pid,
    state: fields[0] ?? '',
    parent: field(4),
    group: field(5),
    session: field(6),
    cpu_ticks: field(14) + field(15),
    children_ticks: field(16) + field(17),
    start_ticks: field(22),
    memory_pages: field(24),
  };
}
