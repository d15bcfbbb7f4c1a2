import { ApiError } from '../../contract/errors.ts';

const UNAVAILABLE_RETRY_S = 1;

interface DatabaseError extends Error {
  code?: string;
}

/**
 * PostgreSQL: connection, resources, operator, system, damage, a lock or time that ran out, a standby that takes no
 * writes, a schema that is missing or out of reach.
 */
const POSTGRES_TROUBLE = /^(08|25006|25P0[23]|28|3D000|3F000|40001|40P01|42501|42P01|53|55P03|57|58|XX)/;
/** The file, its disk, or another process that holds it. */
const SQLITE_TROUBLE =
  /^SQLITE_(IOERR|FULL|BUSY|LOCKED|CANTOPEN|READONLY|CORRUPT|NOTADB|NOMEM|PROTOCOL|PERM|AUTH|SCHEMA)/;
/** What the libraries say where there is no code. */
const TROUBLE_MESSAGE =
  /timeout|[Cc]onnection (terminated|ended)|not queryable|database connection is not open|no such table/;
const SYSTEM_ERROR = /^(E[A-Z]+|EAI_\w+)$/;

/** PostgreSQL's classes of data exceptions, violated constraints and exceeded limits. */
const POSTGRES_DATA = /^(22|23|54)/;
const SQLITE_DATA = /^SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE)/;

/** PostgreSQL's codes have five characters. */
function isSqlState(code: string): boolean {
  return code.length === 5;
}

/** The error as the rest of the manager sees it: `unavailable` where the database cannot be used, else as it is. */
export function told(error: unknown): unknown {
  const { code = '', message } = error as DatabaseError;
  const is_trouble =
    SQLITE_TROUBLE.test(code) ||
    (isSqlState(code) && POSTGRES_TROUBLE.test(code)) ||
    SYSTEM_ERROR.test(code) ||
    TROUBLE_MESSAGE.test(message);
  return is_trouble ? unavailable(error as Error) : error;
}

/** An `unavailable` with its cause for the log. */
export function unavailable(cause: Error): ApiError {
  const made = new ApiError('unavailable', 'The database cannot be used at present.', {
    retry_after_s: UNAVAILABLE_RETRY_S,
  });
  made.cause = cause;
  return made;
}

/**
 * Whether the database can be used and refuses what it was given: the same statement with the same values fails
 * however often it is repeated. Everything else may succeed later.
 */
export function isDataError(error: unknown): boolean {
  const { code = '' } = error as DatabaseError;
  if (SQLITE_DATA.test(code)) return true;
  if (isSqlState(code) && POSTGRES_DATA.test(code)) return true;
  // A value that the library cannot bind.
  return error instanceof TypeError || error instanceof RangeError;
}

/** What the database said, for the log: an `unavailable` holds it as its cause. */
export function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return (cause as Error | undefined)?.message ?? message;
}

/** Whether the disk of the database is full. */
export function isDiskFull(error: unknown): boolean {
  const { cause } = error as { cause?: DatabaseError };
  return /^(SQLITE_FULL|ENOSPC|53100)$/.test(cause?.code ?? '');
}

/** Whether a database that is asked for the first time may be there later: it is away, starting, or has no room. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.code !== 'unavailable') return false;
  const { code = '', message } = error.cause as DatabaseError;
  if (isSqlState(code) && /^(08|40|53|55P03|57)/.test(code)) return true;
  if (/^SQLITE_(BUSY|FULL|LOCKED|PROTOCOL)/.test(code)) return true;
  // A system's error has no meaning for a file that cannot be opened: only those of the network may pass.
  if (/^(ECONN|EHOST|ENET|ETIMEDOUT|EPIPE|EAI_|ENOTFOUND)/.test(code)) return true;
  return code === '' && /timeout|[Cc]onnection (terminated|ended)/.test(message);
}
