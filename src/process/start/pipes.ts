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
 * Makes the pipes of a process in each of these folders, by one run of mkfifo(1), since Node cannot. Throws if that fails:
 * `outbox_unavailable` where there is no such program.
 */
export async function makePipes(folders: readonly string[], program = 'mkfifo'): Promise<void> {
  const { execa } = await import('execa');
  try {
    await execa(program, ['-m', '600', ...folders.flatMap(pipesIn)], { extendEnv: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const remedy = 'Install the package that has it (coreutils in Debian).';
    throw new ApiError('outbox_unavailable', `Processes cannot be started without mkfifo(1). ${remedy}`);
  }
}

/** Removes the pipes of a process. Processes that hold one keep it. Throws the system's error. */
export async function removePipes(folder: string): Promise<void> {
  await Promise.all(
    pipesIn(folder).map((pipe) =>
      unlink(pipe).catch((error) => {
        if (error.code !== 'ENOENT') throw error;
      }),
    ),
  );
}

function pipesIn(folder: string): string[] {
  return PIPE_NAMES.map((name) => pipePath(folder, name));
}
