import { CompiledQuery, type KyselyPlugin, type RootOperationNode } from 'kysely';
import { onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../../../src/manager/database/database.ts';
import { scratchFolder } from '../scratch.ts';

/** How SQLite finds the rows of the queries that `ask` makes. */
export async function plansOf(ask: (database: Database) => Promise<unknown>): Promise<string[]> {
  const database = await openDatabase(`sqlite:${scratchFolder()}/manager.db`);
  onTestFinished(() => database.close());
  const nodes: RootOperationNode[] = [];
  const noting: KyselyPlugin = {
    transformQuery({ node }) {
      nodes.push(node);
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  await ask({ ...database, db: database.db.withPlugin(noting) });
  const plans: string[] = [];
  for (const node of nodes) {
    const { sql, parameters } = database.db.getExecutor().compileQuery(node, { queryId: 'plan' });
    const explained = CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]);
    const { rows } = await database.db.executeQuery<{ detail: string }>(explained);
    plans.push(...rows.map(({ detail }) => detail));
  }
  return plans;
}
