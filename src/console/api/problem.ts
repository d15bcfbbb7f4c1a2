import { SandboxdError } from '../../client/error.ts';

/** Why a request did not succeed, for people: `code` is the client's, or `unexpected` where it is none of its errors. */
export interface Problem {
  code: string;
  message: string;
  /** What the API says beside the message. */
  details: Record<string, unknown>;
  retry_after_s: number | null;
}

/** What an error says to people. */
export function problemOf(error: unknown): Problem {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof SandboxdError))
    return { code: 'unexpected', message, details: {}, retry_after_s: null };
  const { code, details, retry_after_ms } = error;
  return {
    code,
    message: code === 'unreachable' ? 'The server cannot be reached.' : message,
    details: typeof details === 'object' && details !== null ? { ...details } : {},
    retry_after_s: retry_after_ms === null ? null : Math.ceil(retry_after_ms / 1_000),
  };
}

/** The scope that a refused token lacks, or null. */
export function missingScope({ code, details }: Problem): string | null {
  return code === 'forbidden' && typeof details.scope === 'string' ? details.scope : null;
}
