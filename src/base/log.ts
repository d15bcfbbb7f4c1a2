import { type DestinationStream, destination, type Logger, pino } from 'pino';

export type Log = Logger;

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** So much of a log that nobody reads waits in memory; what comes then is dropped. */
const WAITING_MAX_BYTES = 1024 * 1024;

/**
 * A logger of JSON lines on stderr. Whoever does not read them holds up nothing; what waits is written at the exit.
 * Values under the names of secrets are removed as a last line of defence; nothing logs them knowingly.
 */
export function createLog(level: LogLevel, stream: DestinationStream = standardError()): Log {
  return pino(
    {
      level,
      base: undefined,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ['secret', '*.secret', 'authorization', '*.authorization'], remove: true },
    },
    stream,
  );
}

function standardError(): DestinationStream {
  const stream = destination({ fd: 2, sync: false, maxLength: WAITING_MAX_BYTES });
  // A reader that is gone ends nothing.
  stream.on('error', () => {});
  process.on('exit', () => {
    try {
      stream.flushSync();
    } catch {
      // Nobody reads it.
    }
  });
  return stream;
}
