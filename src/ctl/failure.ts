import { systemErrorWords } from '../base/linux/errno.ts';

/** The exit codes of `sandboxctl`. Contract section 4, "`sandboxctl`". */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3 } as const;

/** One of the exit codes in `EXIT`. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The exit code of `run` where it fails itself, as of `docker run`. Contract section 4, "`sandboxctl`". */
export const RUN_FAILED = 125;

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
  return systemErrorWords(code) ?? code ?? message;
}
