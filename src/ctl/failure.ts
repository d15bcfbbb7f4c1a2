/** The exit codes of `sandboxctl`. Contract section 4, "`sandboxctl`". */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3 } as const;

/** One of the exit codes in `EXIT`. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command with this exit code; the message is the one line that the user sees. */
export class Failure extends Error {
  readonly exit_code: ExitCode;

  constructor(exit_code: ExitCode, message: string) {
    super(message);
    this.name = 'Failure';
    this.exit_code = exit_code;
  }
}

/** A system error in words; its code where there are none for it. */
export function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return (code && REASONS[code]) ?? code ?? message;
}

const REASONS: Record<string, string> = {
  EACCES: 'permission denied',
  EADDRINUSE: 'address already in use',
  EADDRNOTAVAIL: 'no such local address',
  EAI_AGAIN: 'the name cannot be resolved right now',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'no route to the host',
  EISDIR: 'is a directory',
  ENETUNREACH: 'no route to the network',
  ENOENT: 'no such file',
  ENOTDIR: 'not a directory',
  ENOTFOUND: 'no such host',
  ETIMEDOUT: 'connection timed out',
};
