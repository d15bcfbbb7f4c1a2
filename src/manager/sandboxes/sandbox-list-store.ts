import { type ExpressionBuilder, type Selectable, sql } from 'kysely';
import type { ManagedStatus } from '../../contract/sandboxes.ts';
import type { Database } from '../database/database.ts';
import type { Dialect, SandboxTable, Tables } from '../database/tables.ts';

/** Which sandboxes a list holds; what is undefined does not filter. */
export interface SandboxFilter {
  status?: ManagedStatus | undefined;
  template_id?: string | undefined;
  paused?: boolean | undefined;
  /** Pairs `key:text`, all of which a sandbox must have in its metadata. */
  metadata?: string[] | undefined;
  limit: number;
  offset: number;
}

/** A page of sandboxes, and the number of all that match. */
export interface SandboxPage {
  rows: Selectable<SandboxTable>[];
  count: number;
}

type Where = ExpressionBuilder<Tables, 'sandboxes'>;

/** Reads a page of a team's sandboxes, newest first. Deleted ones are in no list. Source: contract section 7. */
export async function listSandboxes(
  { db, dialect }: Database,
  team_id: string,
  filter: SandboxFilter,
): Promise<SandboxPage> {
  const matching = (where: Where) =>
    where.and([
      where('team_id', '=', team_id),
      where('deleted_at_ms', 'is', null),
      ...(filter.status === undefined ? [] : [where('status', '=', filter.status)]),
      ...(filter.template_id === undefined ? [] : [where('template_id', '=', filter.template_id)]),
      ...(filter.paused === undefined ? [] : [where('status', filter.paused ? '=' : '!=', 'paused')]),
      ...(filter.metadata ?? []).map((pair) => hasPair(dialect, pair)),
    ]);
  const rows = await db
    .selectFrom('sandboxes')
    .selectAll()
    .where(matching)
    .orderBy('created_at_ms', 'desc')
    .orderBy('sandbox_id', 'desc')
    .limit(filter.limit)
    .offset(filter.offset)
    .execute();
  const { count } = await db
    .selectFrom('sandboxes')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where(matching)
    .executeTakeFirstOrThrow();
  return { rows, count };
}

/** Keys hold no colon, and nothing that a JSON path would have to escape. */
function hasPair(dialect: Dialect, pair: string) {
  const colon = pair.indexOf(':');
  const [key, text] = [pair.slice(0, colon), pair.slice(colon + 1)];
  return dialect === 'sqlite'
    ? sql<boolean>`json_extract(metadata, ${`$."${key}"`}) = ${text}`
    : sql<boolean>`metadata::jsonb ->> ${key} = ${text}`;
}
