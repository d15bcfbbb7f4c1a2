import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpApp, success } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { SCOPES, type Scope } from '../../../src/contract/tokens.ts';
import { guardRoutes } from '../../../src/manager/api/auth.ts';
import { Rights } from '../../../src/manager/api/rights.ts';
import { RequestShares } from '../../../src/manager/api/team-connections.ts';
import { eventually } from '../../support/eventually.ts';
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
  ['DELETE', `${ONE}/webhook/deliveries/y`, 'sandboxes:write'],
  ['DELETE', `${ONE}/webhook/deliveries?state=failed`, 'sandboxes:write'],
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

describe('the requests that are under way', () => {
  /** An API of two routes: one that answers once it may, and one that leaves its share; two requests of each at a time. */
  async function scene() {
    const app = createHttpApp(createLog('silent'));
    const found = Promise.withResolvers<void>();
    const may = Promise.withResolvers<void>();
    const begun: string[] = [];
    const tokens = {
      find: async (token: string) => {
        if (token === 'slow') await found.promise;
        return token === 'wrong' || token === 'slow' ? null : { team_id: token };
      },
    };
    const rights = new Rights(tokens as never);
    guardRoutes(app, tokens as never, async () => {}, rights, new RequestShares(2));
    app.get('/waits', { config: { demands: 'token' } }, async ({ caller }) => {
      begun.push(caller?.team_id ?? '');
      await may.promise;
      return success('well');
    });
    app.get('/passes', { config: { demands: 'token' } }, async (request) => {
      request.leaveShare();
      begun.push('passed');
      await may.promise;
      return success('well');
    });
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    onTestFinished(() => app.close());
    const ask = async (token: string, path: string) => {
      const { status, headers } = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
      return [status, headers.get('retry-after')];
    };
    return { ask, begun, may, found };
  }

  it('of a team are refused above its share, and of no other team', async () => {
    const { ask, begun, may } = await scene();
    const two = [ask('a', '/waits'), ask('a', '/waits')];
    await eventually(() => expect(begun).toEqual(['a', 'a']));
    expect(await ask('a', '/waits')).toEqual([429, '1']);
    const other = ask('b', '/waits');
    await eventually(() => expect(begun).toContain('b'));
    may.resolve();
    expect(await Promise.all([...two, other])).toEqual(Array(3).fill([200, null]));
    expect(await ask('a', '/waits')).toEqual([200, null]);
  });

  it('count no longer once they have a share of another kind', async () => {
    const { ask, begun, may } = await scene();
    const passed = Array.from({ length: 5 }, () => ask('a', '/passes'));
    await eventually(() => expect(begun).toHaveLength(5));
    may.resolve();
    expect(await Promise.all(passed)).toEqual(Array(5).fill([200, null]));
  });

  it('of an address are refused while too many of them wait for their token to be looked up', async () => {
    const { ask, begun, may, found } = await scene();
    const two = [ask('slow', '/waits'), ask('slow', '/waits')];
    await eventually(async () => expect(await ask('a', '/passes')).toEqual([429, '1']));
    found.resolve();
    expect(await Promise.all(two)).toEqual(Array(2).fill([401, null]));
    may.resolve();
    expect(await ask('a', '/passes')).toEqual([200, null]);
    expect(begun).toContain('passed');
  });
});
