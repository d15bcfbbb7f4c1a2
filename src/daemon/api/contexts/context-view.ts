import type { Static } from 'typebox';
import type { ProcessState, ProcessView } from '../../../contract/processes.ts';
import type { ContextData, ContextExecData } from '../../../contract/schema/contexts.ts';
import type { OutputTexts } from '../process-output.ts';

/** How an end is called among contexts; a process that has not ended for good has none. */
const ENDS: Partial<Record<ProcessState, 'stopped' | 'crashed'>> = { exited: 'stopped', crashed: 'crashed' };

/** A process as a context. Source: contract section 4, "Contexts". */
export function contextView(
  process: ProcessView,
  output: OutputTexts | null = null,
): Static<typeof ContextData> {
  const { process_id, cwd, state, started_at } = process;
  return {
    id: process_id,
    type: 'cmd',
    cwd,
    running: state === 'running' || state === 'restarting',
    paused: state === 'paused',
    created_at: started_at,
    ...endOf(process),
    ...(output === null ? {} : outputOf(output)),
  };
}

/** What a process has written, and how it ended if it has. */
export function execView(process: ProcessView, output: OutputTexts): Static<typeof ContextExecData> {
  return { ...outputOf(output), ...endOf(process) };
}

/** How a process ended; nothing if it has not. */
export function endOf({ state, exit_code }: ProcessView): {
  exit_code?: number;
  state?: 'stopped' | 'crashed';
} {
  const end = ENDS[state];
  return end === undefined ? {} : { exit_code: exit_code ?? 0, state: end };
}

/** The two streams are kept apart: how they were interleaved is not known. */
function outputOf({ stdout, stderr }: OutputTexts) {
  return { output_raw: stdout + stderr, stdout, stderr };
}
