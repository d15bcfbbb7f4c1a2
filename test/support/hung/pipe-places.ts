import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { runSync } from '../run-sync.ts';
import type { Place, Scene, Stage } from './place.ts';

/** The daemon's stdout or stderr is a pipe that is read until it is `stuck`. */
function through({ folder }: Stage, descriptor: 1 | 2): string[] {
  const pipe = join(folder, 'pipe');
  runSync('mkfifo', pipe);
  const script = `cat ${pipe} >&${descriptor} & echo $! >${pipe}.reader; exec "$@" ${descriptor}>${pipe}`;
  return ['sh', '-c', script, 'sh'];
}

/** Stops the reader of the pipe, and fills it. */
async function stuck({ folder }: Scene): Promise<void> {
  const pipe = join(folder, 'pipe');
  const reader = Number(readFileSync(`${pipe}.reader`, 'utf8'));
  process.kill(reader, 'SIGSTOP');
  onTestFinished(() => void process.kill(reader, 'SIGKILL'));
  const descriptor = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    for (;;) writeSync(descriptor, Buffer.alloc(4096, '\n'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** Pipes that nobody reads any more. */
export const PIPE_PLACES: Place[] = [
  {
    name: 'log that nobody reads',
    launch: (stage) => ({ through: through(stage, 2), args: ['--log-level', 'trace'] }),
    prepare: stuck,
  },
  {
    name: 'stdout that nobody reads, under a main command',
    launch: (stage) => ({
      through: through(stage, 1),
      args: ['--', 'sh', '-c', 'while :; do echo noise; done'],
    }),
    prepare: stuck,
    exit_codes: [128 + osConstants.signals.SIGTERM],
  },
];
