import { type ExpressionBuilder, type Selectable, sql } from 'kysely';
import type { ManagedStatus } from '../../contract/sandboxes.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { SandboxTable, Tables } from '../database/tables.ts';

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
  // An expression, so that SQLite takes the index of the pairs rather than every sandbox of the team.
  const ofTeam = (where: Where) =>
    filter.metadata?.length && dialect === 'sqlite'
      ? sql<boolean>`team_id || '' = ${team_id}`
      : where('team_id', '=', team_id);
  const matching = (where: Where) =>
    where.and([
      ofTeam(where),
      where('deleted_at_ms', 'is', null),
      ...(filter.status === undefined ? [] : [where('status', '=', filter.status)]),
      ...(filter.template_id === undefined ? [] : [where('template_id', '=', filter.template_id)]),
      ...(filter.paused === undefined ? [] : [where('status', filter.paused ? '=' : '!=', 'paused')]),
      ...(filter.metadata ?? []).map((pair) => hasPair(where, team_id, pair)),
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

/** Keys hold no colon. */
function hasPair(where: Where, team_id: string, pair: string) {
  const colon = pair.indexOf(':');
  const matching = where
    .selectFrom('sandbox_metadata')
    .select('sandbox_metadata.sandbox_id')
    .where('sandbox_metadata.team_id', '=', team_id)
    .where('key', '=', pair.slice(0, colon))
    .where('text', '=', pair.slice(colon + 1));
  return where('sandbox_id', 'in', matching);
}

/** Adds the pairs by which lists find a sandbox that is made in the same transaction. */
export async function indexMetadata(
  tx: Transaction,
  { sandbox_id, team_id, metadata }: Pick<Selectable<SandboxTable>, 'sandbox_id' | 'team_id' | 'metadata'>,
): Promise<void> {
  const pairs = Object.entries<string>(JSON.parse(metadata ?? '{}'));
  if (pairs.length === 0) return;
  const rows = pairs.map(([key, text]) => ({ sandbox_id, team_id, key, text }));
  await tx.insertInto('sandbox_metadata').values(rows).execute();
}

/** Removes them when the sandbox is deleted: it is in no list from then on. */
export async function unindexMetadata(tx: Transaction, sandbox_id: string): Promise<void> {
  await tx.deleteFrom('sandbox_metadata').where('sandbox_id', '=', sandbox_id).execute();
}
