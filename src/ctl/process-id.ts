import { systemClock } from '../base/clock.ts';
import { SandboxdError } from '../client/error.ts';
import type { ProcessView } from '../contract/processes.ts';
import { listProcesses } from './api/list-processes.ts';
import { PROCESS_ROWS } from './api/row-kinds.ts';
import { soundRows } from './api/sound-rows.ts';
import type { Context } from './context.ts';
import { EXIT, Failure } from './failure.ts';
import { processTable } from './ps.ts';

const PREFIX = 'proc_';
const SHOWN_MAX = 10;

/**
 * What `act` does with a process: the one with this id, or else the one whose id begins so, for which `proc_` may be left
 * out. Lists the processes on stderr and throws `Failure` where several begin so.
 */
export async function withProcess<Result>(
  context: Context,
  text: string,
  act: (process_id: string) => Promise<Result>,
): Promise<Result> {
  try {
    return await act(text);
  } catch (error) {
    if (!(error instanceof SandboxdError && error.code === 'not_found')) throw error;
    const process_id = await fullProcessId(context, text);
    if (process_id === null) throw error;
    return act(process_id);
  }
}

async function fullProcessId({ sandbox, err }: Context, text: string): Promise<string | null> {
  const processes = await listProcesses(sandbox);
  const found = processes.filter(({ process_id }) =>
    [text, PREFIX + text].some((beginning) => process_id.startsWith(beginning)),
  );
  if (found.length < 2) return found[0]?.process_id ?? null;
  const { rows } = await soundRows<ProcessView>(found.slice(0, SHOWN_MAX), PROCESS_ROWS);
  await err.lines(processTable(rows, err, systemClock.wallMs()));
  throw new Failure(EXIT.failed, `${found.length} process ids begin with ${text}: give more of it`);
}
