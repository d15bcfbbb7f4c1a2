import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { ClusterClient } from '../../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../../src/runtime/kubernetes/api/config-file.ts';
import { FakeApi } from '../../../support/kubernetes/fake-api.ts';

async function clientOf(answer: (response: ServerResponse) => void) {
  const api = await FakeApi.start();
  api.odd = (_, response) => {
    answer(response);
    return true;
  };
  return new ClusterClient(clusterAccess(api.kubeconfig, null));
}

const HTML = '<html>\n<body>Sign in</body>\n</html>';

it.each<
  [what: string, answer: (response: ServerResponse) => void, code: string | undefined, message: string]
>([
  [
    'a page',
    (to) => to.end(HTML),
    'unavailable',
    'The Kubernetes API does not answer (its answer is not JSON).',
  ],
  ['half an object', (to) => to.end('{"metadata":{"name'), 'unavailable', 'its answer is not JSON'],
  ['nothing', (to) => to.end(), 'unavailable', 'its answer is not JSON'],
  ['null', (to) => to.end('null'), 'unavailable', 'its answer is not an object of Kubernetes'],
  ['a list', (to) => to.end('[]'), 'unavailable', 'its answer is not an object of Kubernetes'],
  ['an object of something else', (to) => to.end('{"a":1}'), 'unavailable', 'not an object of Kubernetes'],
  [
    'less than it has announced',
    (to) => {
      to.writeHead(200, { 'content-length': 100 });
      to.write('{"metadata":{}}', () => to.destroy());
    },
    'unavailable',
    'The Kubernetes API does not answer (',
  ],
  ['nothing at all', (to) => to.destroy(), 'unavailable', 'ECONNRESET'],
  [
    'another protocol',
    (to) => to.writeHead(101, { connection: 'upgrade', upgrade: 'h2c' }).end(),
    'unavailable',
    'no answer',
  ],
  ['a redirect', (to) => to.writeHead(302, { location: '/login' }).end(), undefined, 'refuses with HTTP 302'],
  ['a page that refuses', (to) => to.writeHead(403).end(HTML), undefined, 'refuses with HTTP 403'],
  ['a number that refuses', (to) => to.writeHead(403).end('7'), undefined, 'refuses with HTTP 403'],
  ['null that refuses', (to) => to.writeHead(409).end('null'), undefined, 'refuses with HTTP 409'],
  [
    'that it does not know the token',
    (to) => to.writeHead(401).end('{"message":"Unauthorized"}'),
    undefined,
    'the Kubernetes API refuses with HTTP 401',
  ],
  [
    'a message of many lines',
    (to) => to.writeHead(403).end(JSON.stringify({ message: `no\n${'x '.repeat(4096)}` })),
    undefined,
    'no x',
  ],
  ['that it is busy', (to) => to.writeHead(429).end(HTML), 'unavailable', 'HTTP 429'],
  ['that it is broken', (to) => to.writeHead(500).end(HTML), 'unavailable', 'HTTP 500'],
])('where the API answers %s, one short line says so', async (_what, answer, code, message) => {
  const client = await clientOf(answer);
  const error = await client.get(client.path('pods', 'one')).catch((each) => each as Error);
  if (!(error instanceof Error)) throw new Error('it was taken for an answer');
  expect('code' in error ? error.code : undefined).toBe(code);
  expect(error.message).toContain(message);
  expect(error.message).not.toContain('\n');
  expect(error.message.length).toBeLessThan(1_100);
  expect(error.message).not.toContain('secret-token');
  client.close();
});

it.each(['{"type":"ADDED","object":{"metadata":{"na', HTML, '"text"', 'null', '{"type":"ADDED"}'])(
  'a watch that brings %j ends as one that was cut off',
  async (line) => {
    const client = await clientOf((to) => to.end(`${line}\n`));
    const watch = client.watch(client.path('pods'), '1', AbortSignal.timeout(60_000));
    await expect(watch.next()).rejects.toMatchObject({ code: 'unavailable' });
    client.close();
  },
);
