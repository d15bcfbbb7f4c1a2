import { type DestinationStream, destination, type Logger, pino } from 'pino';
import { systemClock, timestamp } from './clock.ts';

/** The program's logger. */
export type Log = Logger;

/** The levels of `--log-level`, most verbose first. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** One of `LOG_LEVELS`. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The most unread log bytes kept in memory; further lines are dropped. */
const WAITING_MAX_BYTES = 1024 * 1024;

/** How often waiting lines are tried at exit while the reader takes nothing; a tenth of a second lies between two. */
const TRIES_AT_EXIT_MAX = 5;

/**
 * Creates a logger that writes JSON lines to stderr. A slow reader blocks nothing; waiting lines are written at exit.
 * Values under the names of secrets are removed as a last line of defence: no code logs them on purpose.
 */
export function createLog(level: LogLevel, stream: DestinationStream = standardError()): Log {
  return pino(
    {
      level,
      base: undefined,
      timestamp: () => `,"time":"${timestamp(systemClock.wallMs())}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ['secret', '*.secret', 'authorization', '*.authorization'], remove: true },
    },
    stream,
  );
}

function standardError(): DestinationStream {
  let tries_at_exit = 0;
  const stream = destination({
    fd: 2,
    sync: false,
    maxLength: WAITING_MAX_BYTES,
    // At exit each further try blocks the program; a reader that takes nothing must not keep it.
    retryEAGAIN: () => tries_at_exit === 0 || tries_at_exit++ < TRIES_AT_EXIT_MAX,
  });
  // A closed reader must not end the program.
  stream.on('error', () => {});
  // Before the listener of the logger's own, which tries for ever.
  process.prependListener('exit', () => {
    tries_at_exit = 1;
    try {
      stream.flushSync();
    } catch {
      // Nobody reads it.
    }
    stream.flushSync = () => {};
  });
  return stream;
}
