import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SCOPES, type Scope } from '../../../src/contract/tokens.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { TokenStore } from '../../../src/manager/database/token-store.ts';
import { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores('tokens', (fresh) => {
  it('are found by themselves, kept as hashes, listed without themselves and revoked', async () => {
    const { db, close } = await openDatabase(await fresh());
    onTestFinished(close);
    const tokens = new TokenStore(db, new ManualClock());
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

/** A sandbox that is not there. */
const ONE = '/api/v1/sandboxes/sbx_00000000-0000-7000-8000-000000000000';

/** Every route that is not open, and what it takes. */
const NEEDS: [method: string, path: string, scope: Scope][] = [
  ['POST', '/api/v1/sandboxes', 'sandboxes:write'],
  ['GET', '/api/v1/sandboxes', 'sandboxes:read'],
  ['GET', ONE, 'sandboxes:read'],
  ['GET', `${ONE}/status`, 'sandboxes:read'],
  ['PUT', ONE, 'sandboxes:write'],
  ['DELETE', ONE, 'sandboxes:write'],
  ['POST', `${ONE}/pause`, 'sandboxes:write'],
  ['POST', `${ONE}/resume`, 'sandboxes:write'],
  ['POST', `${ONE}/fork`, 'sandboxes:write'],
  ['POST', `${ONE}/refresh`, 'sandboxes:write'],
  ['GET', `${ONE}/processes`, 'sandboxes:read'],
  ['POST', `${ONE}/processes`, 'sandboxes:write'],
  ['GET', `${ONE}/webhook/deliveries`, 'sandboxes:read'],
  ['POST', `${ONE}/webhook/deliveries/y/replay`, 'sandboxes:write'],
  ['GET', '/api/v1/webhooks/deliveries', 'webhooks:read'],
  ['GET', '/api/v1/webhooks/deliveries/x', 'webhooks:read'],
];

describe('who may do what', () => {
  it.each(NEEDS)('%s %s needs %s and nothing else', async (method, path, scope) => {
    const { client, manager } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
    const enough = scope === 'sandboxes:read' ? ['sandboxes:read', 'sandboxes:write'] : [scope];
    const others = await client('team_1', ...SCOPES.filter((each) => !enough.includes(each)));
    const refused = await others.call(method, path);
    expect(refused.status).toBe(403);
    expect(refused.error?.message).toContain(scope);
    for (const each of enough) {
      const { status } = await (await client('team_1', each as Scope)).call(method, path);
      expect([200, 201, 400, 404], `${each} gave ${status}`).toContain(status);
    }
    for (const token of ['', 'wrong', `${others.token}x`]) {
      const nobody = await new Client(() => manager.url, token).call(method, path);
      expect(nobody.status).toBe(401);
      expect(nobody.headers.get('www-authenticate')).toBe('Bearer');
    }
  });

  it('leaves open what tells nothing of anybody', async () => {
    const { manager } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json']) {
      expect((await fetch(manager.url + path)).status, path).toBe(200);
    }
  });
});
