import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAEMON_ROUTES } from '../../../src/contract/routes/daemon.ts';
import { PASSED_ROUTES, type PassedRoute, passedRow } from '../../../src/contract/routes/passed.ts';
import { daemonPath } from '../../../src/manager/api/daemon-path.ts';

const ONE = DAEMON_ROUTES.getProcess.path;
const LIST = DAEMON_ROUTES.listDeliveries.path;

describe('a route that is passed through', () => {
  it.each(Object.entries<PassedRoute>(PASSED_ROUTES))(
    '%s is one of the daemon, and asks for no more than the daemon does',
    (id, { method, path: place, access, status, body_media, from }) => {
      const path = place.replace('/api/v1/sandboxes/:sandbox_id', '');
      expect(from).toBe(DAEMON_ROUTES[id as keyof typeof DAEMON_ROUTES]);
      expect(from.path).toBe(`/api/v1${path}`);
      expect(access).toBe(`sandboxes:${from.access}`);
      expect(status === 101).toBe(/\/(attach|watch|ws)$/.test(path));
      const takes_files = /^\/files(\/archive)?$/.test(path) && /^(POST|PUT)$/.test(String(method));
      expect(body_media !== undefined).toBe(path.endsWith('/stdin') || takes_files);
      const needs_run =
        /^\/(processes|contexts)/.test(path) || (path.startsWith('/files') && from.access === 'write');
      expect(from.passed.answered_by).toBe(needs_run ? 'running' : 'up');
      expect(from.passed.is_use).toBe(!/^\/(webhook|events)\//.test(path));
    },
  );

  it('is listed once', () => {
    const names = Object.values<PassedRoute>(PASSED_ROUTES).map(({ method, path }) => `${method} ${path}`);
    expect(new Set(names).size).toBe(names.length);
  });

  it('is refused by name at the start where callers of sandboxes may not have it', () => {
    const passed = PASSED_ROUTES.listProcesses.from.passed;
    for (const id of ['initSandbox', 'stopSandbox', 'publishEvent', 'getHealth'] as const) {
      expect(() => passedRow(id, { ...DAEMON_ROUTES[id], passed })).toThrow(`${id} cannot be passed through`);
    }
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
