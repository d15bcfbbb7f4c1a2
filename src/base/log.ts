import { type DestinationStream, destination, type Logger, pino } from 'pino';

export type Log = Logger;

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * A logger of JSON lines on stderr. Synchronous: what is logged before an exit is on stderr.
 * Values under the names of secrets are removed as a last line of defence; nothing logs them knowingly.
 */
export function createLog(
  level: LogLevel,
  stream: DestinationStream = destination({ fd: 2, sync: true }),
): Log {
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
