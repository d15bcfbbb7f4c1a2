/** What a script can tell from the exit code of `sandboxctl`. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3 } as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What ends a command: the message is the one line that a person sees. */
export class Failure extends Error {
  readonly exit_code: ExitCode;

  constructor(exit_code: ExitCode, message: string) {
    super(message);
    this.name = 'Failure';
    this.exit_code = exit_code;
  }
}

/** The reason of a system error in a person's words. */
export function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return (code && REASONS[code]) ?? code ?? message;
}

const REASONS: Record<string, string> = {
  EACCES: 'permission denied',
  EADDRINUSE: 'the address is in use',
  EADDRNOTAVAIL: 'no such address here',
  EAI_AGAIN: 'the name cannot be resolved at present',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was cut off',
  EHOSTUNREACH: 'no route to the host',
  EISDIR: 'it is a directory',
  ENETUNREACH: 'no route to the network',
  ENOENT: 'no such file',
  ENOTDIR: 'no such file',
  ENOTFOUND: 'no such host',
  ETIMEDOUT: 'connecting took too long',
};
