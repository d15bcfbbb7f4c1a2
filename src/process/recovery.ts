import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProcessContext } from './context.ts';
import { SupervisedProcess } from './process.ts';
import { loadRecord, type ProcessRecord, type RunRecord, removeFolder } from './record.ts';
import { processStarted } from './run.ts';
import { rootByMark } from './tree.ts';

/**
 * Takes over every process that an earlier daemon left in `directory`: those that run, those that wait for a
 * restart, and those that have ended with their output. Folders that tell nothing are removed; `spare` is not one.
 */
export async function recoverAll(
  context: ProcessContext,
  directory: string,
  spare: string,
): Promise<SupervisedProcess[]> {
  const recovered: SupervisedProcess[] = [];
  for (const name of await readdir(directory)) {
    if (name === spare) continue;
    const folder = join(directory, name);
    const record = await loadRecord(folder);
    const is_known = record?.process_id === name && (record.run !== null || (await findRun(context, record)));
    if (record && is_known) recovered.push(await SupervisedProcess.recover(context, folder, record));
    else await removeFolder(folder);
  }
  return recovered;
}

/** A process whose daemon was killed between its start and the note of its pid; its start is not told yet. */
async function findRun(context: ProcessContext, record: ProcessRecord): Promise<boolean> {
  const [members = []] = await context.trees.find([rootByMark(record.mark)]);
  const leader = members.find(({ pid, group }) => pid === group) ?? members[0];
  if (!leader) return false;
  const run: RunRecord = {
    pid: leader.pid,
    boot_id: context.boot_id,
    start_ticks: leader.start_ticks,
    started_at_ms: record.created_at_ms,
    is_ready: record.request.ready ? false : null,
  };
  record.run = run;
  record.unsent.push({
    key: `${record.mark}.${record.restart_count}.started`,
    event: processStarted(record, run),
  });
  return true;
}
