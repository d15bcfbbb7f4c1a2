import { basename } from 'node:path';
import { PROCESS_STARTS_MAX_BYTES, SMALL_BODY_BYTES } from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { ProcessRequest } from '../contract/processes.ts';
import type { ProcessContext } from './context.ts';
import type { Emit } from './event-queue.ts';
import type { ProcessRecord } from './record.ts';
import { loadRequest } from './record-file.ts';
import { commandOf } from './start/command.ts';

/** The whole request of the process in `folder`, from the disk. Throws `outbox_unavailable` if it cannot be read now. */
export async function readRequest(folder: string): Promise<ProcessRequest> {
  const request = await loadRequest(folder).catch(() => null);
  if (request) return request;
  throw new ApiError('outbox_unavailable', `The request of ${basename(folder)} cannot be read right now.`);
}

/**
 * Like `emit` of the context, but events of a start get the whole command: where the record has only its beginning, it is
 * read again, for a few events at a time. Contract section 2, `process.started`.
 */
export function wholeEmit({ emit, large }: ProcessContext, folder: string, record: ProcessRecord): Emit {
  return (event, key) => {
    if (event.event_type !== 'process.started' || !record.is_command_cut) return emit(event, key);
    return large.run(async () => {
      const request = await loadRequest(folder);
      const command = request ? commandOf(request) : event.payload.command;
      await emit({ ...event, payload: { ...event.payload, command } }, key);
    });
  };
}

/** What an entry of an object or a list takes in memory in addition to its text. */
const ENTRY_COST_BYTES = 64;

/** Starts under way, each of which holds its whole request in memory. */
export class StartRoom {
  #bytes = 0;

  /** Runs `start`. Throws `too_many_requests` for a large request while others take the room; small ones find it always. */
  async run<Result>(request: ProcessRequest, start: () => Promise<Result>): Promise<Result> {
    const bytes = memoryOf(request);
    if (bytes > SMALL_BODY_BYTES && this.#bytes + bytes > PROCESS_STARTS_MAX_BYTES) {
      throw new ApiError('too_many_requests', 'Too many large processes are being started. Try again later.');
    }
    this.#bytes += bytes;
    try {
      return await start();
    } finally {
      this.#bytes -= bytes;
    }
  }
}

/** About what a request takes in memory, in bytes. */
function memoryOf({ command = [], shell = '', env = {} }: ProcessRequest): number {
  let bytes = shell.length;
  for (const argument of command) bytes += argument.length + ENTRY_COST_BYTES;
  for (const name in env) bytes += name.length + (env[name]?.length ?? 0) + ENTRY_COST_BYTES;
  return bytes;
}
