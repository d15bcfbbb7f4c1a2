import { unlinkSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError } from '../../contract/errors.ts';
import { OUTPUT_STREAMS, type OutputStream } from '../../contract/processes.ts';

const PIPE_NAMES = [...OUTPUT_STREAMS, 'stdin'] as const;

/** The path of the named pipe of a process's stream. */
export function pipePath(folder: string, name: OutputStream | 'stdin'): string {
  return join(folder, `${name}.pipe`);
}

/**
 * Makes these pipes of a process, for the daemon's account alone. Throws the system's error, or `outbox_unavailable` for
 * an installation without the addon that makes them.
 */
export async function makePipes(folder: string, names: readonly (OutputStream | 'stdin')[]): Promise<void> {
  const { makeFifo } = await import('../../base/linux/libc.ts').catch(unlessLoaded);
  for (const name of names) makeFifo(pipePath(folder, name));
}

/**
 * Removes the pipes of a process. Processes that hold one keep it. Throws the system's error. Another thread finds out
 * whether the disk answers, and the rest is done in place.
 */
export async function removePipes(folder: string): Promise<void> {
  const [first, ...others] = PIPE_NAMES.map((name) => pipePath(folder, name)) as [string, ...string[]];
  await unlink(first).catch(unlessGone);
  for (const pipe of others) {
    try {
      unlinkSync(pipe);
    } catch (error) {
      unlessGone(error);
    }
  }
}

function unlessLoaded(error: Error): never {
  const [reason] = error.message.split('\n');
  throw new ApiError(
    'outbox_unavailable',
    `Processes cannot be started: the addon koffi cannot be loaded (${reason}).`,
  );
}

function unlessGone(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
