import { access } from 'node:fs/promises';
import type { Clock } from '../base/clock.ts';
import type { OutputStream } from '../contract/processes.ts';
import { OUTPUT_STREAMS } from '../contract/processes.ts';
import type { ProcessContext } from './context.ts';
import type { ExitStatus, Launched } from './launch.ts';
import type { OutputLog } from './output-log.ts';
import { PipeReader } from './pipe-reader.ts';
import { pipePath } from './pipes.ts';
import { readStat, readVariable } from './proc.ts';
import type { RunRecord } from './record.ts';
import { MARK_VARIABLE } from './tree.ts';

/** How often the kernel's table is asked whether a process that is not our child has ended. */
const POLL_MS = 100;

/**
 * Takes over a process that an earlier daemon started. Its pipes are opened again where they were; its stdin went
 * with that daemon. It is not our child: its end is seen, its exit status is nobody's to know.
 */
export async function adopt(
  context: ProcessContext,
  { run, mark }: { run: RunRecord; mark: string },
  folder: string,
  logs: Record<OutputStream, OutputLog>,
  see: (stream: OutputStream, data: Buffer) => void,
): Promise<Launched> {
  await noteStart(run, mark);
  const readers: PipeReader[] = [];
  for (const stream of OUTPUT_STREAMS) {
    const path = pipePath(folder, stream);
    const is_there = await access(path).then(
      () => true,
      () => false,
    );
    if (is_there) readers.push(await PipeReader.open(path, logs[stream], (data) => see(stream, data)));
  }
  return {
    pid: run.pid,
    stdin: null,
    exited: waitUntilGone(context.clock, run, run.boot_id === context.boot_id),
    output_closed: Promise.all(readers.map((reader) => reader.closed)).then(() => {}),
    drain: () => {
      for (const reader of readers) reader.drain();
    },
    close: () => {
      for (const reader of readers) reader.close();
    },
  };
}

/** Whether this very process is still there: the pid alone may be another's by now. */
async function isSame(run: RunRecord): Promise<boolean> {
  const stat = await readStat(run.pid);
  return stat !== null && stat.start_ticks === run.start_ticks && stat.state !== 'Z' && stat.state !== 'X';
}

/** Its start time, where the daemon was killed before it noted it and the mark tells that it is this process. */
async function noteStart(run: RunRecord, mark: string): Promise<void> {
  if (run.start_ticks > 0 || (await readVariable(run.pid, MARK_VARIABLE)) !== mark) return;
  run.start_ticks = (await readStat(run.pid))?.start_ticks ?? 0;
}

function waitUntilGone(clock: Clock, run: RunRecord, is_this_boot: boolean): Promise<ExitStatus> {
  return new Promise((resolve) => {
    const look = async () => {
      if (is_this_boot && (await isSame(run))) clock.after(POLL_MS, look);
      else resolve(null);
    };
    look();
  });
}
