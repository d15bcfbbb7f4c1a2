import { sql } from 'kysely';
import type { Database } from '../../../src/manager/database/database.ts';
import { DatabaseClock, type Moment } from '../../../src/manager/database/database-clock-store.ts';
import type { ManualClock } from '../manual-clock.ts';

/** The moment of a statement at a time. */
export function momentAt(now_ms: number): Moment {
  const at = (ms: number) => sql<number>`cast(${ms} as bigint)`;
  return { now: at(now_ms), in: (delay_ms) => at(now_ms + delay_ms) };
}

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
