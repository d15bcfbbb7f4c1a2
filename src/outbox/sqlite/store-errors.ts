/**
 * The kinds of errors of the outbox, for whoever writes it and whoever reads one that was left.
 * - `away`: the store cannot be used now (no room, a failing disk, no descriptors); the same may work later
 * - `row`: this one row can never be kept as it is; nothing else is concerned
 * - `damage`: the database's contents, or its tables, are not what an outbox has
 */
export type StoreTrouble = 'away' | 'row' | 'damage';

/** No statement that the outbox makes fails as such, and no row violates these constraints: what is stored is wrong. */
const DAMAGE = /^SQLITE_(CORRUPT|NOTADB|FORMAT|ERROR|SCHEMA|CONSTRAINT_(PRIMARYKEY|ROWID|NOTNULL|CHECK))/;
const ROW = /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/;
/** What SQLite says beside those, what the system says, and what a process says that has no memory left. */
const AWAY = /^(SQLITE_|E[A-Z0-9]+$|ERR_MEMORY_ALLOCATION_FAILED$)/;

/** Classifies an error of SQLite, of the system or of a row's values, which has no code of either. */
export function troubleOf(error: unknown): StoreTrouble {
  const code = String((error as { code?: string }).code ?? '');
  if (DAMAGE.test(code)) return 'damage';
  if (ROW.test(code) || !AWAY.test(code)) return 'row';
  return 'away';
}

/** Makes the error of a database whose contents the outbox cannot have written. */
export function damage(message: string): Error {
  return Object.assign(new Error(message), { code: 'SQLITE_CORRUPT' });
}
