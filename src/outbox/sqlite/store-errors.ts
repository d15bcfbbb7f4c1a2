/**
 * What an error of the outbox says.
 * - `away`: the store cannot be used at present (no room, a failing disk, no descriptors); the same may work later
 * - `row`: this one row cannot be kept as it is, and never will be; nothing else is concerned
 * - `damage`: the database's contents are wrong, whatever is asked of them
 */
export type StoreTrouble = 'away' | 'row' | 'damage';

/** No row that the outbox makes itself violates these: what is there already is wrong. */
const DAMAGE = /^SQLITE_(CORRUPT|NOTADB|CONSTRAINT_(PRIMARYKEY|ROWID|NOTNULL|CHECK))/;
const ROW = /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/;

/** Sorts an error of SQLite, of the system or of a row's values. */
export function troubleOf(error: unknown): StoreTrouble {
  const code = String((error as { code?: string }).code ?? '');
  if (DAMAGE.test(code)) return 'damage';
  if (ROW.test(code) || error instanceof TypeError || error instanceof RangeError) return 'row';
  return 'away';
}

/** The error of a database whose contents cannot be what the outbox wrote. */
export function damage(message: string): Error {
  return Object.assign(new Error(message), { code: 'SQLITE_CORRUPT' });
}
