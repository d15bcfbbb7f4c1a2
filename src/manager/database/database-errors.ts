import { systemErrorText } from '../../base/linux/errno.ts';
import { ApiError } from '../../contract/errors.ts';

const UNAVAILABLE_RETRY_S = 1;

interface DatabaseError extends Error {
  code?: string;
}

/**
 * PostgreSQL: connection, resources, operator, system, damage, a lock or query that timed out, a read-only standby, a
 * schema that is missing or not accessible.
 */
const POSTGRES_TROUBLE = /^(08|25006|25P0[23]|28|3D000|3F000|40001|40P01|42501|42P01|53|55P03|57|58|XX)/;
/** SQLite: the file, its disk, or another process that holds a lock. */
const SQLITE_TROUBLE =
  /^SQLITE_(IOERR|FULL|BUSY|LOCKED|CANTOPEN|READONLY|CORRUPT|NOTADB|NOMEM|PROTOCOL|PERM|AUTH|SCHEMA)/;
/** Messages of the libraries for errors without a code. */
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

/** Translates an error for the rest of the manager: `unavailable` if the database cannot be used, otherwise unchanged. */
export function translateError(error: unknown): unknown {
  const { code = '', message } = error as DatabaseError;
  const is_trouble =
    SQLITE_TROUBLE.test(code) ||
    (isSqlState(code) && POSTGRES_TROUBLE.test(code)) ||
    SYSTEM_ERROR.test(code) ||
    TROUBLE_MESSAGE.test(message);
  return is_trouble ? unavailable(error as Error) : error;
}

/** An `unavailable` error that carries its cause for the log. */
export function unavailable(cause: Error): ApiError {
  const made = new ApiError('unavailable', 'The database is currently unavailable.', {
    retry_after_s: UNAVAILABLE_RETRY_S,
  });
  made.cause = cause;
  return made;
}

/**
 * Whether the database works but rejects the values it was given: the same statement fails however often it is
 * repeated. Any other error may be temporary.
 */
export function isDataError(error: unknown): boolean {
  const { code = '' } = error as DatabaseError;
  if (SQLITE_DATA.test(code)) return true;
  if (isSqlState(code) && POSTGRES_DATA.test(code)) return true;
  // A value that the library cannot bind.
  return error instanceof TypeError || error instanceof RangeError;
}

/** What the libraries say of a connection, in words for whoever reads the log. */
const LIBRARY_WORDS: [message: RegExp, words: string][] = [
  [/timeout exceeded when trying to connect|terminated due to connection timeout/, 'no connection in time'],
  [/[Cc]onnection (terminated|ended)|not queryable/, 'the connection was closed'],
  [/[Rr]ead timeout/, 'no answer in time'],
];

/**
 * Why an operation failed, in one line for the log: the database's own message, which an `unavailable` error carries as
 * its cause, or what it means where that is the network's or a library's.
 */
export function reasonOf(error: unknown): string {
  const { message, cause = error } = error as Error;
  const own = (cause as Error).message || message;
  const known = LIBRARY_WORDS.find(([pattern]) => pattern.test(own));
  return systemErrorText(cause) ?? known?.[1] ?? own;
}

/** Whether an `unavailable` error was caused by a full disk. */
export function isDiskFull(error: unknown): boolean {
  const { cause } = error as { cause?: DatabaseError };
  return /^(SQLITE_FULL|ENOSPC|53100)$/.test(cause?.code ?? '');
}

/** Whether a database that failed at the first use may become available: it is unreachable, starting, or out of space. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.code !== 'unavailable') return false;
  const { code = '', message } = error.cause as DatabaseError;
  if (isSqlState(code) && /^(08|40|53|55P03|57)/.test(code)) return true;
  if (/^SQLITE_(BUSY|FULL|LOCKED|PROTOCOL)/.test(code)) return true;
  // A system error on opening a file is permanent: only network errors may pass.
  if (/^(ECONN|EHOST|ENET|ETIMEDOUT|EPIPE|EAI_|ENOTFOUND)/.test(code)) return true;
  return code === '' && /timeout|[Cc]onnection (terminated|ended)/.test(message);
}
