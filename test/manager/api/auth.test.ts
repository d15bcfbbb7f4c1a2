import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SCOPES, type Scope } from '../../../src/contract/tokens.ts';
import { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

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
