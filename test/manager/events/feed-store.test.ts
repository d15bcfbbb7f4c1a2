import { CompiledQuery, type KyselyPlugin, type RootOperationNode } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { FeedStore } from '../../../src/manager/events/feed-store.ts';
import { UsageStore } from '../../../src/manager/usage/usage-store.ts';
import { scratchFolder } from '../../support/scratch.ts';

const AFTER = { xid: 0, seq: 100_000 };

/** How SQLite finds the rows of the queries that `ask` makes. */
async function plansOf(ask: (feed: FeedStore, usage: UsageStore) => Promise<unknown>): Promise<string[]> {
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
  const noted = { ...database, db: database.db.withPlugin(noting) };
  await ask(new FeedStore(noted), new UsageStore(noted));
  const plans: string[] = [];
  for (const node of nodes) {
    const { sql, parameters } = database.db.getExecutor().compileQuery(node, { queryId: 'plan' });
    const explained = CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]);
    const { rows } = await database.db.executeQuery<{ detail: string }>(explained);
    plans.push(...rows.map(({ detail }) => detail));
  }
  return plans;
}

it('finds a page at any depth by an index on SQLite, with each filter, and so do usage windows', async () => {
  const plans = await plansOf(async (feed, usage) => {
    const one = { event_type: 'sandbox.paused', sandbox_id: 'sbx_1' } as const;
    await feed.page('team_1', AFTER, { limit: 1_000 });
    await feed.page('team_1', AFTER, { limit: 1_000, event_type: one.event_type });
    await feed.page('team_1', AFTER, { limit: 1_000, sandbox_id: one.sandbox_id });
    await feed.page('team_1', AFTER, { limit: 1_000, ...one });
    await feed.teams(AFTER, 1_000);
    await usage.page('team_1', AFTER, { limit: 1_000, window_type: undefined });
  });
  expect(plans).toEqual([
    'SEARCH events USING INDEX events_team (team_id=? AND xid=? AND seq>?)',
    'SEARCH events USING INDEX events_team_type (team_id=? AND event_type=? AND xid=? AND seq>?)',
    'SEARCH events USING INDEX events_sandbox (sandbox_id=? AND xid=? AND seq>?)',
    'SEARCH events USING INDEX events_sandbox (sandbox_id=? AND xid=? AND seq>?)',
    'SEARCH events USING INDEX events_order (xid=? AND seq>?)',
    'SEARCH usage_windows USING INDEX usage_windows_order (team_id=? AND xid=? AND seq>?)',
  ]);
});
