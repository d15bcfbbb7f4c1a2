import { sql } from 'kysely';
import type { Database } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import type { ManualClock } from '../manual-clock.ts';

/** A database whose own time a test moves: PostgreSQL's server reads its clock from this one. */
export function timedBy(database: Database, clock: ManualClock): Database {
  return {
    ...database,
    get time() {
      return database.time && sql<number>`cast(${clock.wallMs()} as bigint)`;
    },
  };
}

/** The time of a database that a test moves. */
export function manualTime(database: Database, clock: ManualClock): Promise<DatabaseClock> {
  return DatabaseClock.open(timedBy(database, clock), clock);
}
