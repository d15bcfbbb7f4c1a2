import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
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
  /** Ticks after boot; with the pid it names a process for the life of the machine. */
  start_ticks: number;
  memory_pages: number;
}

/** Length of a clock tick, the unit of the times in /proc/<pid>/stat, on every Linux that Node runs on. */
export const CLOCK_TICK_MS = 10;
/** Size of a memory page. */
export const PAGE_BYTES = 4096;

/** The present time in ticks after boot, the unit of `start_ticks`. */
export function bootTicks(): number {
  return Math.round((uptime() * 1_000) / CLOCK_TICK_MS);
}

/** Errors that say nothing about the process: the daemon has no descriptor or memory left to read with. */
const EXHAUSTED = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);

/** The process with this pid, or null if there is none. Throws `too_many_requests` if that cannot be read now. */
export async function readStat(pid: number): Promise<ProcStat | null> {
  const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(unlessExhausted);
  return text === null ? null : parseStat(text);
}

/** readStat, synchronous: the kernel answers from memory, faster than a call to another thread. */
export function readStatNow(pid: number): ProcStat | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch (error) {
    return unlessExhausted(error);
  }
}

function unlessExhausted(error: unknown): null {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (!EXHAUSTED.has(code)) return null;
  throw new ApiError('too_many_requests', `The process table cannot be read at present (${code}).`);
}

/** Every visible process, by pid. Throws `too_many_requests` if the table cannot be read now. */
export async function readAllStats(): Promise<Map<number, ProcStat>> {
  const names = (await readdir('/proc').catch(unlessExhausted)) ?? [];
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const stats = await Promise.all(pids.map(readStat));
  return new Map(stats.flatMap((stat) => (stat ? [[stat.pid, stat] as const] : [])));
}

/**
 * The value of one variable in the environment that a process was started with, or null if it is not set or may not be
 * read. Throws `too_many_requests` if that cannot be read now.
 */
export async function readVariable(pid: number, name: string): Promise<string | null> {
  const block = (await readFile(`/proc/${pid}/environ`, 'latin1').catch(unlessExhausted)) ?? '';
  const prefix = `${name}=`;
  const entry = block.split('\0').find((part) => part.startsWith(prefix));
  return entry?.slice(prefix.length) ?? null;
}

/** The id of this boot of the machine; empty if it cannot be read. */
export async function readBootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'latin1').catch(() => '')).trim();
}

/** Reads a line of /proc/<pid>/stat; the name, in parentheses, may hold anything. */
function parseStat(text: string): ProcStat | null {
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
