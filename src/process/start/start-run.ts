import { rename } from 'node:fs/promises';
import { allEnded } from '../../base/all-ended.ts';
import { readStatNow } from '../../base/linux/procfs.ts';
import type { Outlet } from '../output/outlet.ts';
import type { ProcessRecord, RecordFile } from '../record.ts';
import type { ProcessContext } from './context.ts';
import { type Launched, launch } from './launch.ts';
import { OpenPipes } from './open-pipes.ts';
import { makePipes, removePipes } from './pipes.ts';
import { prepare } from './prepare.ts';
import { launchTerminal } from './terminal.ts';

/** What one run is started with. */
export interface RunStart {
  record: ProcessRecord;
  file: RecordFile;
  /** The process's own folder. */
  folder: string;
  /** A folder made in advance, with pipes. It is renamed to `folder` just before the program is started. */
  made_in?: string;
  outlet: Outlet;
  /** Called with the signal of each signal key typed at the terminal. */
  onSignalKey: (signal: string) => void;
}

/**
 * Starts one run: saves the record, opens pipes or a terminal, and launches the program. Throws the catalogue's error
 * or the system's if it cannot be started; no pipe stays open then. The order matters: the record is written before
 * the program runs, so that a daemon that is killed in between finds the process again by its tag.
 */
export async function startRun(context: ProcessContext, start: RunStart): Promise<Launched> {
  const { record, file, folder, made_in, outlet } = start;
  const { pty } = record.request;
  const opening = pty ? null : openPipes(start);
  file.moveTo(made_in ?? folder);
  try {
    const [spec, pipes] = await allEnded([prepare(context, record), opening, file.save()]);
    await allEnded([
      made_in === undefined ? null : rename(made_in, folder),
      spec.user && pipes?.giveTo(spec.user),
    ]);
    file.moveTo(folder);
    if (pty) return await launchTerminal(spec, pty, outlet, start.onSignalKey);
    return await launch(spec, pipes as OpenPipes);
  } catch (error) {
    await opening?.then(
      (pipes) => pipes.close(),
      () => {},
    );
    throw error;
  }
}

/**
 * Notes the start time of a run, which with the pid names its process for good, and lets the kernel's out-of-memory
 * killer choose that process before the daemon. To be called while the pid cannot be another's.
 */
export function nameRun({ log, oom }: ProcessContext, { process_id, run }: ProcessRecord): void {
  if (!run) return;
  try {
    run.start_ticks = readStatNow(run.pid)?.start_ticks ?? 0;
  } catch (error) {
    log.warn(
      { err: error, process_id },
      'the start time of a process is unknown: after a restart it is found by its tag',
    );
  }
  oom.rankBefore(run.pid);
}

async function openPipes({ record, folder, made_in, outlet }: RunStart): Promise<OpenPipes> {
  if (made_in === undefined) {
    await removePipes(folder); // those of the last run
    await makePipes([folder]);
  }
  const { stdin = 'ignore' } = record.request;
  return OpenPipes.open({ ...outlet, made_in: made_in ?? folder, folder, stdin });
}
