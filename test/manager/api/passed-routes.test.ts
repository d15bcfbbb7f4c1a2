import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accessOf } from '../../../src/daemon/api/route-access.ts';
import { daemonPath, PASSED_ROUTES, type PassedRoute } from '../../../src/manager/api/passed-routes.ts';

function routeTo(method: string, path: string): PassedRoute {
  const route = PASSED_ROUTES.find((each) => each.method === method && each.path === path);
  if (!route) throw new Error(`${method} ${path} is not passed through`);
  return route;
}

const ONE = routeTo('GET', '/processes/:process_id');
const LIST = routeTo('GET', '/webhook/deliveries');

describe('a route that is passed through', () => {
  it.each(PASSED_ROUTES.map((route) => [route.method, route.path, route] as const))(
    '%s %s is one of the daemon, and asks for no more than the daemon does',
    (method, path, { scope, is_upgrade, is_streamed, answered_by }) => {
      expect(accessOf(method, `/api/v1${path}`)).toBe(scope);
      expect(is_upgrade).toBe(/\/(attach|watch|ws)$/.test(path));
      const takes_files = /^\/files(\/archive)?$/.test(path) && /^(POST|PUT)$/.test(method);
      expect(is_streamed).toBe(path.endsWith('/stdin') || takes_files);
      const needs_run =
        /^\/(processes|contexts)/.test(path) || (path.startsWith('/files') && scope === 'write');
      expect(answered_by).toBe(needs_run ? 'running' : 'up');
    },
  );

  it('is listed once', () => {
    const names = PASSED_ROUTES.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('the path at the daemon', () => {
  it('is made of the route, the ids and the query', () => {
    expect(daemonPath(ONE, { process_id: 'a-Z_0.9:x' }, '/x')).toBe('/api/v1/processes/a-Z_0.9:x');
    expect(daemonPath(LIST, {}, '/x?state=failed&limit=5')).toBe(
      '/api/v1/webhook/deliveries?state=failed&limit=5',
    );
    expect(daemonPath(LIST, {}, '/x?')).toBe('/api/v1/webhook/deliveries');
  });

  it('is refused where its query is not UTF-8', () => {
    expect(() => daemonPath(LIST, {}, '/x?cursor=%ff')).toThrow('cursor: must be UTF-8');
  });

  it.each(['', '.', '..', 'a/b', 'a%2fb', 'a b', 'a\r\nb', 'ü', 'x'.repeat(129)])(
    'is none for the id %j',
    (process_id) => {
      expect(daemonPath(ONE, { process_id }, '/x')).toBeNull();
    },
  );

  it('stays within its route, whatever the caller sends', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (process_id, url) => {
        let path: string | null = null;
        try {
          path = daemonPath(ONE, { process_id }, url);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_request', problem: 'must be UTF-8' });
        }
        if (path === null) return;
        expect(path).toMatch(/^\/api\/v1\/processes\/[A-Za-z0-9_.:-]+(\?[\x21-\x7e]*)?$/);
        expect(new URL(path, 'http://daemon').pathname).toBe(`/api/v1/processes/${process_id}`);
      }),
    );
  });

  it('carries the same parameters, encoded anew', () => {
    const parameters = fc.array(fc.tuple(fc.string({ minLength: 1 }), fc.string()), { maxLength: 5 });
    fc.assert(
      fc.property(parameters, (given) => {
        const query = new URLSearchParams(given);
        const path = daemonPath(LIST, {}, `/x?${query}`) ?? '';
        expect([...new URL(path, 'http://daemon').searchParams]).toEqual([...query]);
      }),
    );
  });
});
