import { expect, it } from 'vitest';
import { TokenStore } from '../../../src/manager/database/token-store.ts';
import { manualTime } from '../../support/manager/manual-time.ts';
import { opened } from '../../support/manager/outbox.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores('tokens', (fresh) => {
  it('are found by their text, kept as hashes, listed without it, and revoked', async () => {
    const database = await opened(await fresh());
    const { db } = database;
    const tokens = new TokenStore(db, await manualTime(database, new ManualClock()));
    const token = await tokens.create('team_1', ['usage:read', 'usage:read', 'admin'], true);
    const [listed] = await tokens.list();
    expect(listed).toEqual({
      token_id: expect.stringMatching(/^tok_/),
      team_id: 'team_1',
      scopes: ['usage:read', 'admin'],
      internal: true,
      created_at: '2026-01-01T00:00:00.000Z',
      revoked_at: null,
    });
    const token_id = listed?.token_id as string;
    expect(await tokens.find(token)).toEqual({
      actor: token_id,
      team_id: 'team_1',
      scopes: ['usage:read', 'admin'],
      is_internal: true,
    });
    expect(JSON.stringify(await db.selectFrom('tokens').selectAll().execute())).not.toContain(token);
    expect(await tokens.find(token.slice(0, -1))).toBeNull();
    expect(await tokens.revoke('tok_nobody')).toBe(false);
    expect(await tokens.revoke(token_id)).toBe(true);
    expect(await tokens.find(token)).toBeNull();
    expect(await tokens.revoke(token_id)).toBe(true);
  });
});
