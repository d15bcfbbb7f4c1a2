import { expect, it } from 'vitest';
import { FeedStore } from '../../../src/manager/events/feed-store.ts';
import { UsageStore } from '../../../src/manager/usage/usage-store.ts';
import { plansOf } from '../../support/manager/query-plans.ts';

const AFTER = { xid: 0, seq: 100_000 };

it('finds a page at any depth by an index on SQLite, with each filter, and so do usage windows', async () => {
  const plans = await plansOf(async (database) => {
    const [feed, usage] = [new FeedStore(database), new UsageStore(database)];
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
