import { existsSync } from 'node:fs';
import { StartError } from '../../contract/errors.ts';
import { type Database, openDatabase } from '../database/database.ts';

/** Gives a command the database of a server. Throws StartError as `openDatabase`, and for a SQLite file that is not there. */
export async function withDatabase<Result>(
  url: string,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : null;
  if (path !== null && !existsSync(path)) {
    const hint = 'give the --database or --config of the server, which makes it at its first start';
    throw new StartError(`--database ${path} is not there: ${hint}`, 2);
  }
  const database = await openDatabase(url);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
