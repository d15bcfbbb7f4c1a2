import { join, resolve } from 'node:path';
import { kernelRandom } from '../../base/entropy.ts';
import type { ProcessRequest } from '../../contract/schema/process-request.ts';
import type { ProcessContext } from '../context.ts';
import { SupervisedProcess } from '../process.ts';
import { type ProcessRecord, removeFolder } from '../record.ts';
import { commandOf, startError } from './command.ts';

/** What is started. `lossless`: see SpawnExtras. */
export interface NewProcess {
  process_id: string;
  request: ProcessRequest;
  lossless?: boolean;
}

/**
 * Starts a process in a folder of its own below `directory`. Throws the catalogue's error if that fails, and leaves
 * nothing behind: `too_many_requests` for a limit of the system, `outbox_unavailable` for other errors of the disk,
 * CannotStart for a command at fault.
 */
export async function startProcess(
  context: ProcessContext,
  directory: string,
  start: NewProcess,
): Promise<SupervisedProcess> {
  const folder = join(directory, start.process_id);
  const record = newRecord(start, context.clock.wallMs());
  try {
    return await SupervisedProcess.start(context, folder, record);
  } catch (error) {
    await removeFolder(folder).catch(() => {});
    throw startError(error, record.command[0]);
  }
}

function newRecord(
  { process_id, request, lossless = false }: NewProcess,
  created_at_ms: number,
): ProcessRecord {
  return {
    process_id,
    request,
    command: commandOf(request),
    cwd: resolve(request.cwd ?? '.'),
    mark: kernelRandom(12).toString('hex'),
    created_at_ms,
    restart_count: 0,
    run: null,
    end: null,
    is_final: false,
    is_stopped: false,
    is_lossless: lossless,
    unsent: [],
  };
}
