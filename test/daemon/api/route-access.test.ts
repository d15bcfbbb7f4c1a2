import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { CONTROL_SCOPES } from '../../../src/contract/control-scopes.ts';
import { registerDaemonRoutes } from '../../../src/daemon/api/app.ts';
import { accessOf, includesScope } from '../../../src/daemon/api/route-access.ts';

describe('the access that a route requires', () => {
  it.each([
    ['GET', '/healthz', 'health'],
    ['POST', '/api/v1/webhook/publish', 'open'],
    ['GET', '/openapi.json', 'open'],
    ['GET', '/api/v1/processes', 'read'],
    ['POST', '/api/v1/processes', 'write'],
    ['GET', '/api/v1/processes/:process_id/attach', 'write'],
    ['PUT', '/api/v1/sandbox/env', 'manage'],
    ['POST', '/api/v1/sandbox/stop', 'socket'],
  ])('of %s %s is %s', (method, url, access) => {
    expect(accessOf(method, url)).toBe(access);
  });

  it.each([
    ['GET', '/api/v1/webhook/publish'],
    ['get', '/healthz'],
    ['GET', '/api/v1/processes/p1'],
    ['GET', undefined],
    ['', 'constructor'],
  ])('of %s %s is unknown', (method, url) => {
    expect(accessOf(method, url)).toBeUndefined();
  });

  it('is unknown for whatever text is not in the table', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (method, url) => {
        expect(accessOf(method, url)).toBeUndefined();
      }),
    );
  });

  it('is known for every route that the daemon serves', async () => {
    const app = createHttpApp(createLog('silent'));
    const unlisted: string[] = [];
    app.addHook('onRoute', ({ method, url }) => {
      for (const each of [method].flat()) if (!accessOf(each, url)) unlisted.push(`${each} ${url}`);
    });
    await registerDaemonRoutes(app, {} as never);
    expect(unlisted).toEqual([]);
    await app.close();
  });
});

describe('a control scope', () => {
  it('includes itself and every lesser one', () => {
    const included = CONTROL_SCOPES.map((given) =>
      CONTROL_SCOPES.filter((need) => includesScope(given, need)),
    );
    expect(included).toEqual([['read'], ['read', 'write'], ['read', 'write', 'manage']]);
  });

  it.each([undefined, '', 'READ', 'read, manage', 'everything', ['read', 'manage']])(
    'given as %j includes none',
    (given) => {
      for (const needed of CONTROL_SCOPES) expect(includesScope(given, needed)).toBe(false);
    },
  );
});
