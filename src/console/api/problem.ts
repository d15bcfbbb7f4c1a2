/** Why a request did not succeed, for people: `code` is the API's, or `unreachable` where nobody answered. */
export interface Problem {
  code: string;
  message: string;
  status: number;
  /** What the API says beside the message. */
  details: Record<string, unknown>;
  retry_after_s: number | null;
}

/** An answer of the API that is an error, or none at all. */
export class RequestProblem extends Error implements Problem {
  readonly code: string;
  readonly status: number;
  readonly details: Record<string, unknown>;
  readonly retry_after_s: number | null;

  constructor(problem: Problem) {
    super(problem.message);
    this.code = problem.code;
    this.status = problem.status;
    this.details = problem.details;
    this.retry_after_s = problem.retry_after_s;
  }
}

/** What an error says to people. */
export function problemOf(error: unknown): Problem {
  if (error instanceof RequestProblem) return error;
  const message = error instanceof Error ? error.message : String(error);
  return { code: 'unexpected', message, status: 0, details: {}, retry_after_s: null };
}

/** The scope that a refused token lacks, or null. */
export function missingScope({ code, details }: Problem): string | null {
  return code === 'forbidden' && typeof details.scope === 'string' ? details.scope : null;
}
