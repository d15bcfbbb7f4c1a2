import type { Database } from 'better-sqlite3';
import { ERROR_DETAIL_MAX_CHARACTERS, RESPONSE_KEEP_BYTES } from '../../../contract/defaults.ts';
import { ATTEMPTS } from './tables.ts';

const ADDED_COLUMN = 'error_detail TEXT';

/** The log of attempts of format 2; its other tables are those of format 3. */
export const ATTEMPTS_OF_SECOND_FORMAT = ATTEMPTS.replace(`, ${ADDED_COLUMN}`, '');

/** Makes format 3 of format 2: attempts say why they failed; of earlier ones that is not known. */
export const FROM_SECOND_FORMAT = `ALTER TABLE attempts ADD COLUMN ${ADDED_COLUMN};`;

/**
 * The columns of a log of attempts of any format, for a query: response bodies cut to 1 KiB, details null where the
 * format has none.
 */
export function attemptColumns(db: Database): string {
  const has_detail = db
    .prepare("SELECT 1 FROM pragma_table_info('attempts') WHERE name = 'error_detail'")
    .get();
  const detail =
    has_detail === undefined ? 'NULL' : `substr(error_detail, 1, ${ERROR_DETAIL_MAX_CHARACTERS})`;
  return `attempt, started_at_ms, duration_ms, status, error, ${detail} AS error_detail, next_attempt_at_ms,
    substr(response_body, 1, ${RESPONSE_KEEP_BYTES}) AS response_body`;
}
