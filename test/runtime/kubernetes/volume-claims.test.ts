import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { ClusterClient } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import { labelsOf, MANAGED, objectName, RECORD_ANNOTATION } from '../../../src/runtime/kubernetes/names.ts';
import { Records } from '../../../src/runtime/kubernetes/records.ts';
import { VolumeClaims } from '../../../src/runtime/kubernetes/volume-claims.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApi } from '../../support/kubernetes/fake-api.ts';

const record = (sandbox_id: string) =>
  JSON.stringify({ sandbox_id, team_id: 'team_a', template: 'default', state: 'created' });

async function opened() {
  const api = await FakeApi.start();
  const client = new ClusterClient(clusterAccess(api.kubeconfig, null));
  const log = createLog('silent');
  const told: object[] = [];
  log.error = (fields: object) => void told.push(fields);
  const claims = new VolumeClaims(client, systemClock, log);
  onTestFinished(async () => {
    await claims.stop();
    client.close();
  });
  const path = client.path('persistentvolumeclaims');
  const make = (name: string, text: string | null, labels: object = MANAGED) => {
    const annotations = text === null ? {} : { [RECORD_ANNOTATION]: text };
    return client.create(path, { metadata: { name, labels, annotations } });
  };
  return { api, client, claims, told, make, path };
}

it.each([
  'not JSON',
  '{"sandbox_id":',
  'null',
  '[]',
  '{}',
  '{"sandbox_id":7}',
  record('').replace('created', 'odd'),
])(
  'a record that was damaged to %j hides no other sandbox, is told, and is not taken for missing',
  async (text) => {
    const { client, claims, told, make } = await opened();
    const name = objectName('sbx-labelled');
    await make('sb-well', record('sbx-well'));
    await make(name, text, labelsOf('sbx-labelled'));
    await make('sb-nobody', text);
    for (const follow of [() => {}, () => claims.start()]) {
      told.length = 0;
      follow();
      expect((await claims.ids()).sort()).toEqual(['sbx-labelled', 'sbx-well']);
      expect(told).toEqual([
        { claim: name, sandbox_id: 'sbx-labelled' },
        { claim: 'sb-nobody', sandbox_id: null },
      ]);
    }
    await expect(new Records(client).read('sbx-labelled')).rejects.toMatchObject({
      code: 'internal_error',
      message: `The record of the sandbox in the volume claim ${name} is damaged.`,
    });
  },
);

it('claims are followed by their metadata alone, and a sandbox is found by the name that its objects have', async () => {
  const { api, client, claims, make, path } = await opened();
  await make('pool-1', null, { ...MANAGED, 'sandboxd.dev/pool': 'x' });
  await make('pool-2', record('sbx-taken'));
  claims.start();
  expect(await claims.ids()).toEqual(['sbx-taken']);
  expect([claims.nameOf('sbx-taken'), claims.nameOf('sbx-other')]).toEqual(['pool-2', null]);
  await eventually(() => expect(api.watches).toBe(1));
  await make('sb-other', record('sbx-other'));
  await eventually(async () => expect(await claims.ids()).toEqual(['sbx-taken', 'sbx-other']));
  await client.remove(`${path}/pool-2`);
  await eventually(async () => expect(await claims.ids()).toEqual(['sbx-other']));
  expect([claims.nameOf('sbx-taken'), claims.nameOf('sbx-other')]).toEqual([null, 'sb-other']);
  const lists = api.asked.filter(({ method }) => method === 'GET');
  expect(lists.every(({ accept }) => accept.includes('as=PartialObjectMetadata'))).toBe(true);
  expect(lists.some(({ query }) => query.get('limit') === '500')).toBe(true);
});
