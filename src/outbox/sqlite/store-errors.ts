/**
 * The kinds of errors of the outbox.
 * - `away`: the store cannot be used now (no room, a failing disk, no descriptors); the same may work later
 * - `row`: this one row can never be kept as it is; nothing else is concerned
 * - `damage`: the database's contents are wrong
 */
export type StoreTrouble = 'away' | 'row' | 'damage';

/** No row that the outbox makes violates these constraints: the stored rows are wrong. */
const DAMAGE = /^SQLITE_(CORRUPT|NOTADB|CONSTRAINT_(PRIMARYKEY|ROWID|NOTNULL|CHECK))/;
const ROW = /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/;

/** Classifies an error of SQLite, of the system or of a row's values. */
export function troubleOf(error: unknown): StoreTrouble {
  const code = String((error as { code?: string }).code ?? '');
  if (DAMAGE.test(code)) return 'damage';
  if (ROW.test(code) || error instanceof TypeError || error instanceof RangeError) return 'row';
  return 'away';
}

/** Makes the error of a database whose contents the outbox cannot have written. */
export function damage(message: string): Error {
  return Object.assign(new Error(message), { code: 'SQLITE_CORRUPT' });
}
