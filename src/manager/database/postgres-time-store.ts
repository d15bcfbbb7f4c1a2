import { type RawBuilder, sql } from 'kysely';

/** SQL for PostgreSQL's own time in whole ms: the same throughout a statement, which may wait for locks. */
export const POSTGRES_TIME: RawBuilder<number> = sql<number>`(extract(epoch from statement_timestamp()) * 1000)::bigint`;
