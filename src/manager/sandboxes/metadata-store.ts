import type { ExpressionBuilder, Selectable } from 'kysely';
import type { Transaction } from '../database/database.ts';
import type { SandboxTable, Tables } from '../database/tables.ts';

/** The pairs of sandboxes' metadata by which lists find them, a row each. */

/** The condition for sandboxes of a team that have a pair, `key:text`; keys hold no colon. */
export function hasPair(where: ExpressionBuilder<Tables, 'sandboxes'>, team_id: string, pair: string) {
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
export async function addPairs(
  tx: Transaction,
  { sandbox_id, team_id, metadata }: Pick<Selectable<SandboxTable>, 'sandbox_id' | 'team_id' | 'metadata'>,
): Promise<void> {
  const pairs = Object.entries<string>(JSON.parse(metadata ?? '{}'));
  if (pairs.length === 0) return;
  const rows = pairs.map(([key, text]) => ({ sandbox_id, team_id, key, text }));
  await tx.insertInto('sandbox_metadata').values(rows).execute();
}

/** Removes the pairs of a sandbox that is deleted: it is in no list from then on. */
export async function removePairs(tx: Transaction, sandbox_id: string): Promise<void> {
  await tx.deleteFrom('sandbox_metadata').where('sandbox_id', '=', sandbox_id).execute();
}
