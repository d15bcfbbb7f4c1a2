import type { ServerResponse } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { ClusterClient } from '../../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../../src/runtime/kubernetes/api/config-file.ts';
import { ObjectWatch } from '../../../../src/runtime/kubernetes/api/object-watch.ts';
import type { KubernetesObject } from '../../../../src/runtime/kubernetes/api/objects.ts';
import { eventually } from '../../../support/eventually.ts';
import { type Asked, FakeApi, refuse } from '../../../support/kubernetes/fake-api.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const named = (name: string, resourceVersion = '1') => ({ metadata: { name, uid: name, resourceVersion } });
const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;

/** A followed list of Pods; `watches`: the answers to its watches, oldest first, and how each was asked. */
async function followed() {
  const api = await FakeApi.start();
  const clock = new ManualClock();
  const client = new ClusterClient(clusterAccess(api.kubeconfig, null));
  const watches: { asked: Asked; response: ServerResponse }[] = [];
  const lists: Asked[] = [];
  const given = { items: [named('a'), named('b'), named('c')], version: '10' };
  api.odd = (asked, response) => {
    if (asked.kind !== 'pods') return false;
    if (asked.query.has('watch')) {
      watches.push({ asked, response });
      response.flushHeaders();
      return true;
    }
    lists.push(asked);
    const from = Number(asked.query.get('continue') ?? 0);
    const to = from + Number(asked.query.get('limit'));
    const more = to < given.items.length ? { continue: String(to) } : {};
    const metadata = { resourceVersion: given.version, ...more };
    response.end(JSON.stringify({ metadata, items: given.items.slice(from, to) }));
    return true;
  };
  const changes: string[] = [];
  const watch = new ObjectWatch<KubernetesObject, string>({
    ...{ client, clock, path: `${client.path('pods')}?labelSelector=a%3Db`, form: 'metadata', page: 2 },
    keep: ({ metadata }) => metadata.resourceVersion,
    onChange: (name, now, before) => changes.push(`${name}: ${before} -> ${now}`),
  });
  onTestFinished(async () => {
    await watch.stop();
    client.close();
  });
  const known = async () => [...(await watch.known())];
  const nth = async (count: number) => {
    await eventually(() => expect(watches).toHaveLength(count));
    return watches[count - 1] as (typeof watches)[number];
  };
  return { api, clock, watch, watches, lists, given, changes, known, nth };
}

it('objects are listed once, a page at a time, and from then on told', async () => {
  const { known, lists, nth, changes } = await followed();
  expect(await known()).toEqual([
    ['a', '1'],
    ['b', '1'],
    ['c', '1'],
  ]);
  expect(lists.map(({ query }) => [query.get('limit'), query.get('continue')])).toEqual([
    ['2', null],
    ['2', '2'],
  ]);
  const { asked, response } = await nth(1);
  expect(Object.fromEntries(asked.query)).toEqual({
    ...{ labelSelector: 'a=b', watch: 'true', resourceVersion: '10' },
    ...{ allowWatchBookmarks: 'true', timeoutSeconds: '30' },
  });
  response.write(line('MODIFIED', named('a', '11')) + line('DELETED', named('b', '12')));
  response.write(line('ADDED', named('d', '13')));
  await eventually(async () =>
    expect(await known()).toEqual([
      ['a', '11'],
      ['c', '1'],
      ['d', '13'],
    ]),
  );
  expect(changes.slice(3)).toEqual(['a: 1 -> 11', 'b: 1 -> null', 'd: null -> 13']);
  expect(lists).toHaveLength(2);
});

it('a watch that has ended is followed by one from where a bookmark has said that it came', async () => {
  const { known, lists, nth } = await followed();
  await known();
  const { response } = await nth(1);
  response.end(line('BOOKMARK', { metadata: { resourceVersion: '99' } }));
  expect((await nth(2)).asked.query.get('resourceVersion')).toBe('99');
  expect(lists).toHaveLength(2);
});

it.each([
  ['in its watch', (response: ServerResponse) => response.end(line('ERROR', { metadata: {}, code: 410 }))],
  ['instead of one', null],
])('what the server no longer remembers, said %s, is listed again', async (_how, gone) => {
  const { api, clock, known, lists, given, nth } = await followed();
  await known();
  const first = await nth(1);
  given.items = [named('c', '20'), named('e', '21')];
  const usual = api.odd;
  if (gone === null) {
    api.odd = (asked, response) => {
      if (!asked.query.has('watch')) return usual(asked, response);
      api.odd = usual;
      return refuse(response, 410, 'Expired', 'too old resource version');
    };
    first.response.end(line('BOOKMARK', { metadata: { resourceVersion: '11' } }));
  } else gone(first.response);
  await eventually(async () => {
    await clock.advance(1_000);
    expect(lists.length).toBe(3);
  });
  await eventually(async () =>
    expect(await known()).toEqual([
      ['c', '20'],
      ['e', '21'],
    ]),
  );
});

it('a watch that says nothing and never ends is given up, and what was known is not believed for ever', async () => {
  const { api, clock, known, nth } = await followed();
  await known();
  await nth(1);
  const usual = api.odd;
  let asked = 0;
  api.odd = (_, response) => {
    asked += 1;
    return refuse(response, 503, 'ServiceUnavailable', 'etcd is away');
  };
  await clock.advance(34_000);
  expect(asked).toBe(0);
  expect(await known()).toHaveLength(3);
  await clock.advance(1_000);
  await eventually(async () => {
    await clock.advance(1_000);
    expect(asked).toBeGreaterThan(0);
  });
  await clock.advance(6_000);
  await eventually(() => expect(known()).rejects.toMatchObject({ code: 'unavailable' }));
  api.odd = usual;
  await eventually(async () => {
    await clock.advance(5_000);
    expect(await known()).toHaveLength(3);
  });
});

it('watches that end at once and say nothing are not begun again at once', async () => {
  const { api, clock, known, nth, watches } = await followed();
  await known();
  for (let count = 1; count <= 3; count++) {
    const { response } = await nth(count);
    response.end();
    await eventually(() => expect(response.closed).toBe(true));
    // As many turns as it would take to ask again.
    for (let turn = 0; turn < 3; turn++) await fetchVersion(api);
    expect(watches).toHaveLength(count);
    await eventually(async () => {
      await clock.advance(1_000);
      expect(watches).toHaveLength(count + 1);
    });
  }
});

/** An answer of the server that is about nothing. */
async function fetchVersion(api: FakeApi): Promise<void> {
  const client = new ClusterClient(clusterAccess(api.kubeconfig, null));
  await client.get(client.path('configmaps', 'none'));
  client.close();
}
