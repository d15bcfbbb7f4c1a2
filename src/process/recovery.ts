import { closeSync, openSync, readFileSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { bootTicks } from '../base/linux/procfs.ts';
import { OUTPUT_STREAMS } from '../contract/words.ts';
import type { ProcessContext } from './context.ts';
import { PipeReader } from './output/pipe-reader.ts';
import type { ProcessRecord, RunRecord } from './record.ts';
import { type KeptRecord, loadRecord } from './record-file.ts';
import { beginRun } from './run.ts';
import type { ExitStatus, Launched, Outlet } from './start/launch.ts';
import { pipePath } from './start/pipes.ts';
import { rootByTag, type TreeFinder } from './tree/tree.ts';

/** How often the kernel's process table is read for the end of a process that is not a child of this daemon. */
const POLL_MS = 100;
/** The most looks at processes, of all together: of many, each is looked at less often. */
const LOOKS_IN_A_MS = 2;

/**
 * The record of the process that an earlier daemon left in `folder`, with the run that it had not saved yet; null if
 * there is no valid record, or if its program never ran. Throws the system's error if it cannot be read now.
 */
export async function recoverRecord(context: ProcessContext, folder: string): Promise<KeptRecord | null> {
  const is_folder = (await lstat(folder)).isDirectory();
  const stored = is_folder ? await loadRecord(folder) : null;
  if (stored?.record.process_id !== basename(folder)) return null;
  const { record } = stored;
  if (record.run === null) return (await findRun(context, record)) ? stored : null;
  const is_restarting = record.end && !record.is_final && record.run.boot_id === context.boot_id;
  if (is_restarting && record.run.ended_ticks !== undefined) await findRun(context, record);
  return stored;
}

/** Finds a process whose daemon was killed after its start and before its pid was saved; adds its started event. */
async function findRun(context: ProcessContext, record: ProcessRecord): Promise<boolean> {
  const [members = []] = await context.trees.find([rootByTag(record.mark)]);
  const { ended_ticks = 0 } = record.run ?? {};
  // Descendants of an earlier run carry the tag, too.
  const later = members.filter(({ start_ticks }) => start_ticks > ended_ticks);
  const leader = later.find(({ pid, group }) => pid === group) ?? (record.run ? undefined : later[0]);
  if (!leader) return false;
  const { unsent } = beginRun(context, record, {
    pid: leader.pid,
    start_ticks: leader.start_ticks,
    started_at_ms: record.end?.exited_at_ms ?? record.created_at_ms,
    is_ready: record.request.ready ? false : null,
  });
  record.unsent.push(unsent);
  return true;
}

/**
 * Takes over a process that an earlier daemon started. Its pipes are opened again by their path; its stdin ended with
 * that daemon. It is not a child of this daemon, so its end can be seen but its exit status is unknown. Throws the
 * system's error if the pipes cannot be opened.
 */
export async function reattach(
  context: ProcessContext,
  tag: string,
  run: RunRecord,
  folder: string,
  { logs, onOutput }: Outlet,
): Promise<Launched> {
  await noteStart(context.trees, run, tag);
  const sighting = await Sighting.open(context, run);
  const readers: PipeReader[] = [];
  const closeAll = () => {
    for (const reader of readers) reader.close();
  };
  try {
    for (const stream of OUTPUT_STREAMS) {
      const path = pipePath(folder, stream);
      const reader = PipeReader.reopen(path, logs[stream], (data) => onOutput(stream, data));
      if (reader) readers.push(reader);
    }
  } catch (error) {
    closeAll();
    sighting.close();
    throw error;
  }
  return {
    pid: run.pid,
    start_ticks: run.start_ticks,
    stdin: null,
    exited: waitUntilGone(context.clock, sighting),
    endedTicks: () => sighting.endedTicks(),
    output_closed: Promise.all(readers.map((reader) => reader.closed)).then(() => {}),
    drain: () => {
      for (const reader of readers) reader.drain();
    },
    close: closeAll,
  };
}

/** Checks whether this very process still runs: its pid may have been reused. */
class Sighting {
  /** Its folder in /proc, which stays that of this very process. */
  #folder: number | null;
  #last_ticks = 0;

  private constructor(folder: number | null) {
    this.#folder = folder;
  }

  /** Throws the system's error if no descriptor is left. */
  static async open({ trees, boot_id }: ProcessContext, run: RunRecord): Promise<Sighting> {
    if (run.boot_id !== boot_id || run.ended_ticks !== undefined) return new Sighting(null);
    const sighting = new Sighting(openFolder(run.pid));
    try {
      const [found] = await trees.table.read([run.pid]);
      // An end that cannot be seen is not assumed.
      const is_same = found && (found.start_ticks === run.start_ticks || found.start_ticks === 0);
      if (!is_same) sighting.close();
    } catch {}
    return sighting;
  }

  endedTicks(): number | null {
    if (this.#folder === null) return this.#last_ticks;
    const now_ticks = bootTicks(); // taken before the check: the end may come right after it
    if (hasEnded(this.#folder)) {
      this.close();
      return this.#last_ticks;
    }
    this.#last_ticks = now_ticks;
    return null;
  }

  /** It counts as ended from now on. */
  close(): void {
    if (this.#folder !== null) closeSync(this.#folder);
    this.#folder = null;
  }
}

/** Null if there is no such process. Throws the system's error if no descriptor is left. */
function openFolder(pid: number): number | null {
  try {
    return openSync(`/proc/${pid}`, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Whether the process of a folder in /proc has ended. An end that cannot be seen is not assumed. */
function hasEnded(folder: number): boolean {
  try {
    return /^State:\s+[ZX]/m.test(readFileSync(`/proc/self/fd/${folder}/status`, 'latin1'));
  } catch (error) {
    return ['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '');
  }
}

/** Notes the start time if the daemon was killed before it did, and the tag proves that this is the process. */
async function noteStart(trees: TreeFinder, run: RunRecord, tag: string): Promise<void> {
  if (run.start_ticks > 0) return;
  const [found] = await trees.table.variables([run.pid]);
  if (found !== tag) return;
  const [stat] = await trees.table.read([run.pid]);
  run.start_ticks = stat?.start_ticks ?? 0;
}

/** Processes that are looked for. */
let looked_for = 0;

function waitUntilGone(clock: Clock, sighting: Sighting): Promise<ExitStatus> {
  looked_for += 1;
  return new Promise((resolve) => {
    const look = () => {
      if (sighting.endedTicks() === null) {
        clock.after(Math.max(POLL_MS, looked_for / LOOKS_IN_A_MS), look);
        return;
      }
      looked_for -= 1;
      resolve(null);
    };
    look();
  });
}
