import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Clock, runTime, sleep } from '../../../base/clock.ts';
import { NO_SIGUSR1 } from '../../../base/engine/flags.ts';
import { CLOCK_TICK_MS, readStatNow } from '../../../base/linux/procfs.ts';
import { startProgram } from '../../../base/start-program.ts';
import { ApiError } from '../../../contract/errors.ts';
import type { HandOverSource, UndeliveredPage } from './undelivered-record.ts';

/** The first message is the source, each further one asks for another page. */
export type ToReader = HandOverSource | 'next';

/** A message of the reader process. */
export type FromReader =
  | { kind: 'page'; page: UndeliveredPage }
  | { kind: 'end' }
  /** An error that may pass. */
  | { kind: 'failed'; code: string; reason: string };

/** How long reading a whole outbox may take; longer ones are hostile. */
const READ_MAX_MS = 60_000;
/** What of that time a reader has the processor where nothing but the files keeps it busy, on a busy machine too. */
const WORKED_SHARE = 0.1;

/** The signals and codes with which a reader dies of hostile files. */
const CRASHES = ['SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP'];

/**
 * Reads a handover in a process of its own, so that neither its length nor its contents delay or harm this one. If the
 * files cannot be read to their end, the last page says why; throws temporary failures, as `readUndelivered` does.
 */
export async function* readUndeliveredApart(
  source: HandOverSource,
  clock: Clock,
  read_max_ms = READ_MAX_MS,
): AsyncGenerator<UndeliveredPage> {
  const reader = await start();
  let left_ms = read_max_ms;
  try {
    let message: ToReader = source;
    for (;;) {
      const asked_ms = runTime(clock).monotonicMs();
      const answer = await ask(reader, message, clock, left_ms);
      left_ms -= runTime(clock).monotonicMs() - asked_ms;
      if (answer === 'end') return;
      yield answer;
      message = 'next';
    }
  } catch (error) {
    if (!(error instanceof Indigestible)) throw error;
    yield { records: [], lost_records: 0, set_aside: 0, trouble: error.message };
  } finally {
    reader.kill('SIGKILL');
  }
}

/** The files, and not the disk, keep from reading them. */
class Indigestible extends Error {}

async function start(): Promise<ChildProcess> {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
  const program = fileURLToPath(new URL(`./hand-over-reader.${extension}`, import.meta.url));
  const { child } = await startProgram([process.execPath, NO_SIGUSR1, program], {
    // Nothing of this process's environment, such as its database's address, comes near hostile files.
    env: {},
    stdio: ['ignore', 'ignore', 'ignore'],
    has_channel: true,
  });
  return child;
}

async function ask(
  reader: ChildProcess,
  message: ToReader,
  clock: Clock,
  within_ms: number,
): Promise<UndeliveredPage | 'end'> {
  const over = new AbortController();
  try {
    const answer = await Promise.race([
      answered(reader, message, over.signal),
      sleep(runTime(clock), Math.max(0, within_ms), over.signal).then(() => null),
    ]);
    if (answer === null) throw tooLong(reader, within_ms);
    if (answer.kind === 'end') return 'end';
    if (answer.kind === 'page') return answer.page;
    if (answer.code === 'conflict') throw new ApiError('conflict', answer.reason);
    throw Object.assign(new Error(answer.reason), { code: answer.code });
  } finally {
    over.abort();
  }
}

function answered(reader: ChildProcess, message: ToReader, over: AbortSignal): Promise<FromReader> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null, signal: NodeJS.Signals | null) => {
      const reason = `the reader ended with ${code ?? signal}`;
      reject(signal !== null && CRASHES.includes(signal) ? new Indigestible(reason) : new Error(reason));
    };
    reader.once('message', resolve as (answer: unknown) => void);
    reader.once('error', reject);
    reader.once('exit', onExit);
    over.addEventListener('abort', () => {
      reader.off('message', resolve);
      reader.off('exit', onExit);
      // An error may still come of ending it.
      reader.off('error', reject).on('error', () => {});
    });
    reader.send(message, (error) => error && reject(error));
  });
}

/** A reader that has worked for some of the time was given endless work; one that has not waits for a disk. */
function tooLong({ pid = 0 }: ChildProcess, within_ms: number): Error {
  const worked_ms = (readStatNow(pid)?.cpu_ticks ?? 0) * CLOCK_TICK_MS;
  if (worked_ms > within_ms * WORKED_SHARE) return new Indigestible('reading it takes too long');
  return Object.assign(new Error('the disk does not answer'), { code: 'ETIMEDOUT' });
}
