import { describe, expect, it } from 'vitest';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { DAEMON_ROUTES } from '../../../src/contract/routes/daemon.ts';
import { registerDaemonRoutes } from '../../../src/daemon/api/app.ts';

describe('the access that a route requires', () => {
  it.each([
    ['getHealth', 'health'],
    ['publishEvent', 'open'],
    ['getDocument', 'open'],
    ['listProcesses', 'read'],
    ['startProcess', 'write'],
    // An attached client can also write to the process.
    ['attachProcess', 'write'],
    ['attachContext', 'write'],
    ['setEnvironment', 'manage'],
    ['stopSandbox', 'socket'],
  ] as const)('of %s is %s', (id, access) => {
    expect(DAEMON_ROUTES[id].access).toBe(access);
  });

  it('is what a change asks for: no route that changes something can be reached by who may only read', () => {
    const changing = Object.entries(DAEMON_ROUTES).filter(
      ([, { method }]) => method !== 'GET' && method !== 'HEAD',
    );
    expect(changing.filter(([, { access }]) => access === 'read')).toEqual([]);
    const open = changing.filter(([, { access }]) => access === 'open' || access === 'health');
    expect(open.map(([id]) => id)).toEqual(['publishEvent']);
  });

  it('is known to the guard for every route that the daemon serves', async () => {
    const app = createHttpApp(createLog('silent'));
    const served: (string | undefined)[] = [];
    app.addHook('onRoute', ({ config }) => void served.push(config?.access));
    await registerDaemonRoutes(app, {} as never);
    expect(served).toHaveLength(Object.keys(DAEMON_ROUTES).length);
    expect(served).not.toContain(undefined);
    await app.close();
  });
});
