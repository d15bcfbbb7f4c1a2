import type { ErrorCode } from '../contract/errors.ts';

/** The head of an answer. */
export interface Answered {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
}

/** What is known of a failed call. */
export interface Failure {
  code: SandboxdErrorCode;
  message: string;
  status: number;
  details?: unknown;
  request_id?: string | null;
  retry_after_ms?: number | null;
  cause?: unknown;
}

/**
 * A code of the catalogue; `unreachable` where there is no answer, and `bad_answer` where it is none of sandboxd's. A
 * later server may have further codes. Contract section 4, "Error codes", and section 7, "Errors of the manager".
 */
export type SandboxdErrorCode = ErrorCode | 'unreachable' | 'bad_answer' | (string & {});

/** Every failure of a call, but an abort by the caller, which is thrown as the reason of its signal. */
export class SandboxdError extends Error {
  readonly code: SandboxdErrorCode;
  /** The HTTP status; 0 where there is no answer. */
  readonly status: number;
  /** What is at fault, such as `{field: 'config.ttl'}`; undefined where the error has none. */
  readonly details: unknown;
  /** The `X-Request-Id` of the answer, as in the server's log. */
  readonly request_id: string | null;
  /** When the server asks to try again, counted from its answer; null where it does not say. */
  readonly retry_after_ms: number | null;

  constructor({ code, message, status, details, request_id = null, retry_after_ms = null, cause }: Failure) {
    super(message, { cause });
    this.name = 'SandboxdError';
    this.code = code;
    this.status = status;
    this.details = details;
    this.request_id = request_id;
    this.retry_after_ms = retry_after_ms;
  }
}

/** The error of an answer that is no success; `body` is its JSON. */
export function errorOfAnswer({ status, headers }: Answered, body: unknown): SandboxdError {
  const facts = {
    status,
    request_id: headers.get('x-request-id'),
    retry_after_ms: retryAfterOf(headers),
  };
  const error = (body as { error?: unknown } | null | undefined)?.error;
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') {
    const { code, message, details } = error as { code: string; message?: unknown; details?: unknown };
    return new SandboxdError({ ...facts, code, message: String(message ?? code), details });
  }
  return new SandboxdError({ ...facts, code: 'bad_answer', message: `the server answered ${status}` });
}

/** The error of a call that found no server, or lost it. */
export function unreachable(cause: unknown): SandboxdError {
  return new SandboxdError({
    code: 'unreachable',
    message: 'the server cannot be reached',
    status: 0,
    cause,
  });
}

/** `Retry-After` in ms: it is in seconds, or a date, which is counted from the `Date` of the answer. */
function retryAfterOf(headers: Answered['headers']): number | null {
  const given = headers.get('retry-after')?.trim();
  if (!given) return null;
  if (/^\d+$/.test(given)) return Number(given) * 1000;
  const ms = Date.parse(given) - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}
