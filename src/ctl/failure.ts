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

  constructor(exit_code: ExitCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'Failure';
    this.exit_code = exit_code;
  }
}

/** Errors of OpenSSL and of HTTP say more in their messages than in their codes. */
const UNTRUSTED = /SELF_SIGNED_CERT|UNABLE_TO_(GET|VERIFY)/;
const ERRNO = /^E[A-Z0-9]+$/;

/** A system error in words; its code where there are none for it, and the message of an error that is none. */
export function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const words = systemErrorWords(code);
  if (words !== null) return words;
  if (code !== undefined && ERRNO.test(code)) return code;
  if (code === undefined || !UNTRUSTED.test(code)) return message;
  return `${message.split(';')[0]}; NODE_EXTRA_CA_CERTS names a file with certificate authorities to trust`;
}
