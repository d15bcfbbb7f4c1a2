import type { Log } from '../../base/log.ts';
import type { ProcessOutput } from '../output/process-output.ts';
import { removePipes } from '../start/pipes.ts';

/** What the end of a process's output works on. */
export interface DrainTarget {
  log: Log;
  process_id: string;
  /** The process's own folder. */
  folder: string;
  output: ProcessOutput;
}

/** Resolves when the output is written or given up; logs how much was lost. Never rejects. */
export async function drainOutput({ log, process_id, output }: DrainTarget): Promise<void> {
  await output.flush();
  const { dropped_bytes: lost_bytes } = output;
  if (lost_bytes === 0) return;
  log.warn({ process_id, lost_bytes }, 'output of a process was lost: it could not be written to disk');
}

/** Closes the output and removes the pipes, once no process can write to them. Logs what fails; never rejects. */
export async function closeOutput({ log, process_id, folder, output }: DrainTarget): Promise<void> {
  for (const step of await Promise.allSettled([...output.close(), removePipes(folder)])) {
    if (step.status === 'rejected')
      log.warn({ err: step.reason, process_id }, 'the output or pipes of a process could not be closed');
  }
}
