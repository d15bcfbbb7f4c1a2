import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProcessContext } from './context.ts';
import { SupervisedProcess } from './process.ts';
import { addUnsent, loadRecord, type ProcessRecord, type RunRecord, removeFolder } from './record.ts';
import { processStarted } from './run.ts';
import { rootByTag } from './tree/tree.ts';

/** The result of a recovery. `unread`: names of folders that could not be read or recovered yet; they are kept. */
export interface RecoveredProcesses {
  recovered: SupervisedProcess[];
  unread: string[];
}

/**
 * Takes over every process that an earlier daemon left in these folders of `directory`: running ones, those that wait
 * for a restart, and ended ones with their output. Folders without a valid record are removed. Never rejects: an error
 * with one process is logged and does not affect the others.
 */
export async function recoverAll(
  context: ProcessContext,
  directory: string,
  names: readonly string[],
): Promise<RecoveredProcesses> {
  const recovered: SupervisedProcess[] = [];
  const unread: string[] = [];
  for (const name of names) {
    try {
      const process = await recoverOne(context, join(directory, name), name);
      if (process) recovered.push(process);
    } catch (error) {
      context.log.error(
        { err: error, process_id: name },
        'a process cannot be recovered right now: it will be retried',
      );
      unread.push(name);
    }
  }
  return { recovered, unread };
}

async function recoverOne(
  context: ProcessContext,
  folder: string,
  name: string,
): Promise<SupervisedProcess | null> {
  const is_folder = (await lstat(folder)).isDirectory();
  const record = is_folder ? await loadRecord(folder) : null;
  const is_known = record?.process_id === name && (record.run !== null || (await findRun(context, record)));
  const is_restarting = record?.end && !record.is_final && record.run?.boot_id === context.boot_id;
  if (is_restarting && record.run?.ended_ticks !== undefined) await findRun(context, record);
  if (record && is_known) return SupervisedProcess.recover(context, folder, record);
  await removeFolder(folder);
  return null;
}

/** Finds a process whose daemon was killed after its start and before its pid was saved; adds its started event. */
async function findRun(context: ProcessContext, record: ProcessRecord): Promise<boolean> {
  const [members = []] = await context.trees.find([rootByTag(record.mark)]);
  const { ended_ticks = 0 } = record.run ?? {};
  // Descendants of an earlier run carry the tag, too.
  const later = members.filter(({ start_ticks }) => start_ticks > ended_ticks);
  const leader = later.find(({ pid, group }) => pid === group) ?? (record.run ? undefined : later[0]);
  if (!leader) return false;
  const run: RunRecord = {
    pid: leader.pid,
    boot_id: context.boot_id,
    start_ticks: leader.start_ticks,
    started_at_ms: record.end?.exited_at_ms ?? record.created_at_ms,
    user: record.request.user ?? context.default_user,
    is_ready: record.request.ready ? false : null,
  };
  record.run = run;
  record.end = null;
  addUnsent(record, 'started', processStarted(record, run));
  return true;
}
