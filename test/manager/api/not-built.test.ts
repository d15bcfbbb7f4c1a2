import { describe, expect, it } from 'vitest';
import { MANAGER_ROUTES } from '../../../src/contract/routes/manager.ts';
import { withoutUnbuilt } from '../../../src/manager/api/not-built.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { describeOnStores } from '../../support/stores.ts';

const SANDBOXES = '/api/v1/sandboxes';

describeOnStores('what clients of the family offer beyond the contract', (fresh) => {
  it('is 501 by its name, behind the token, and in no document', async () => {
    const { client, manager } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write');
    const id = await team.claim();
    const one = `${SANDBOXES}/${id}`;
    for (const [method, path, feature] of [
      ['GET', `${one}/sessions`, 'sessions'],
      ['PUT', `${one}/sessions/a/desired-state`, 'sessions'],
      ['PUT', `${one}/services`, 'services'],
      ['GET', `${one}/observability/logs`, 'observability'],
      ['GET', `${one}/metrics`, 'metrics'],
      ['PUT', `${one}/network`, 'network policy'],
      ['POST', `${one}/snapshots`, 'snapshots'],
      ['DELETE', '/api/v1/sandbox-rootfs-snapshots/a', 'snapshots'],
      ['POST', `${one}/rootfs/restore`, 'rootfs'],
      ['POST', '/api/v1/templates/from-sandbox', 'templates'],
      ['GET', '/api/v1/credential-sources/a', 'credential sources'],
      ['GET', '/api/v1/sandboxvolumes', 'volumes'],
      ['GET', '/teams', 'teams'],
    ] as const) {
      const body = method === 'GET' ? undefined : 'not read';
      expect(await team.call(method, path, body), `${method} ${path}`).toMatchObject({
        status: 501,
        error: { code: 'not_implemented', message: `Not implemented: ${feature}.`, details: { feature } },
      });
    }
    expect((await fetch(`${manager.url}/api/v1/templates`)).status).toBe(401);
    const document = await (await fetch(`${manager.url}/openapi.json`)).text();
    expect(document).not.toContain('/sessions');
  });

  it('is taken as not given in a body where it says nothing, and refused by name where it says something', async () => {
    const { client } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write');
    const network = { mode: 'allow-all', egress: { allowedCidrs: [], proxy: null }, credentialBindings: [] };
    const config = { services: [], network };
    const claimed = await team.post(SANDBOXES, { snapshot_id: null, mounts: [], config });
    expect(claimed.status).toBe(201);
    const path = `${SANDBOXES}/${claimed.data.sandbox_id}`;
    expect((await team.call('PUT', path, { config: { services: [], network: null, ttl: 60 } })).status).toBe(
      200,
    );

    const egress = { allowedCidrs: ['10.0.0.0/8'] };
    for (const [body, field] of [
      [{ config: { services: [{}] } }, 'config.services'],
      [{ snapshot_id: 'snap' }, 'snapshot_id'],
      [{ config: { network: { mode: 'allow-all', egress } } }, 'config.network.egress'],
    ] as const) {
      expect(await team.post(SANDBOXES, body), field).toMatchObject({
        status: 501,
        error: { code: 'not_implemented', details: { field } },
      });
    }
    expect(await team.post(SANDBOXES, { config: { colour: null } })).toMatchObject({
      status: 400,
      error: { details: { field: 'config.colour' } },
    });
    expect((await team.get(SANDBOXES)).data.count).toBe(1);
  });
});

describe('a body of another shape', () => {
  it.each([[null], [undefined], [[]], ['text'], [{ config: [] }], [{ config: { network: 1 } }]])(
    '%j is left to its schema',
    (body) => {
      const given = structuredClone(body);
      withoutUnbuilt({ body }, MANAGER_ROUTES.claimSandbox.unbuilt);
      expect(body).toEqual(given);
    },
  );

  it('that says something is refused', () => {
    const { unbuilt } = MANAGER_ROUTES.changeSandbox;
    const refusal = expect.objectContaining({ details: { field: 'config.network' } });
    expect(() => withoutUnbuilt({ body: { config: { network: 1 } } }, unbuilt)).toThrow(refusal);
  });
});
