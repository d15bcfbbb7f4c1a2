import { expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { InjectionOption, SandboxTemplate } from '../../../src/contract/templates.ts';
import { ClusterClient } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import { checkCluster } from '../../../src/runtime/kubernetes/cluster-check.ts';
import { FakeApi, type Odd, refuse } from '../../support/kubernetes/fake-api.ts';

const TEMPLATE: SandboxTemplate = {
  ...{ image: 'any:1', image_pull_secret: null, runtime_class: null, storage_class: null },
  ...{ user: 1000, work_dir: '/workspace', user_namespace: true, persistent_root: false, ephemeral_mib: 256 },
  ...{ resources: {}, pool: null },
};
const TEMPLATES = new Map([
  ['default', TEMPLATE],
  ['other', { ...TEMPLATE, user: 0 }],
]);

/** What no cluster is known to do. */
const ALWAYS = [
  'the network of Pods is not counted',
  'network policies, and with them block-all, hold only if the network plugin of the cluster enforces them',
];

/** Of a fake API server there are no nodes. */
const PROCESSES =
  "how many processes a Pod may have (podPidsLimit of the kubelet) is the nodes' to bound, and not known to the manager";

async function checked(odd: Odd, injection: InjectionOption = 'auto') {
  const api = await FakeApi.start();
  api.odd = odd;
  const client = new ClusterClient(clusterAccess(api.kubeconfig, null));
  const question = { namespace: 'here', templates: TEMPLATES, product_image: 'product:1', injection };
  try {
    const answer = await checkCluster(client, question, createLog('silent'));
    expect(answer.limitations).toContain(PROCESSES);
    const limitations = answer.limitations.filter((each) => each !== PROCESSES);
    return { ...answer, limitations, api };
  } finally {
    client.close();
  }
}

/** Refuses Pods with an image volume, as the message says. */
const noImageVolumes =
  (status: number, message: string): Odd =>
  ({ kind, body }, response) =>
    kind === 'pods' &&
    body.spec?.volumes?.some((each) => 'image' in each) === true &&
    refuse(response, status, 'Invalid', message);

const TOO_OLD = 'Pod "sb-1" is invalid: spec.volumes[3]: Required value: must specify a volume type';
const NOT_ALLOWED =
  'pods "sb-1" is forbidden: violates PodSecurity "restricted:v1.30": restricted volume types (volume "program" uses restricted volume type "image")';

it('image volumes are mounted where the API server takes them, and nothing is made to find out', async () => {
  const { injection, limitations, api } = await checked(() => false);
  expect([injection, limitations, api.names()]).toEqual(['image-volume', ALWAYS, []]);
  const pods = api.asked.filter(({ kind }) => kind === 'pods');
  expect(pods.map(({ query }) => query.get('dryRun'))).toEqual(['All', 'All']);
});

it.each([
  [422, TOO_OLD],
  [403, NOT_ALLOWED],
])('where they are refused (%d %s), the program is copied by an init container', async (status, message) => {
  const { injection, limitations, api } = await checked(noImageVolumes(status, message));
  expect([injection, limitations]).toEqual(['init-container', ALWAYS]);
  const pod = api.asked.findLast(({ kind }) => kind === 'pods');
  expect(pod?.body.spec?.initContainers).toHaveLength(1);
});

it('image volumes that are asked for and refused end the start with one line', async () => {
  await expect(checked(noImageVolumes(422, TOO_OLD), 'image-volume')).rejects.toMatchObject({
    name: 'StartError',
    message: `--kubernetes-injection image-volume: the cluster refuses it: ${TOO_OLD}`,
  });
});

it('an init container that is asked for is taken without a question about image volumes', async () => {
  const { injection, api } = await checked(noImageVolumes(422, TOO_OLD), 'init-container');
  expect(injection).toBe('init-container');
  expect(api.asked.filter(({ kind }) => kind === 'pods')).toHaveLength(TEMPLATES.size);
});

it('a full namespace is no limitation, and a template that the namespace does not allow is named', async () => {
  const full: Odd = ({ kind }, response) =>
    kind === 'pods' && refuse(response, 403, 'Forbidden', 'pods "a" is forbidden: exceeded quota: none');
  expect(await checked(full)).toMatchObject({ injection: 'image-volume', limitations: ALWAYS });
  const not_root: Odd = ({ kind, body }, response) =>
    kind === 'pods' &&
    JSON.stringify(body).includes('"runAsUser":0') &&
    refuse(response, 403, 'Forbidden', 'violates PodSecurity:\nrunAsUser=0');
  expect((await checked(not_root)).limitations).toEqual([
    ...ALWAYS,
    'the cluster refuses Pods of template other: violates PodSecurity: runAsUser=0',
  ]);
});

it('says that claims with block-all are refused, and why, where no policy holds them or none may be read', async () => {
  const none: Odd = ({ kind }, response) => {
    if (kind !== 'networkpolicies') return false;
    response.end('{"metadata":{"resourceVersion":"1"},"items":[]}');
    return true;
  };
  const refused = 'claims with block-all are refused';
  expect((await checked(none)).limitations).toEqual([
    ...ALWAYS,
    `${refused}: no network policy keeps Pods with the label sandboxd.dev/network=block-all from sending`,
  ]);
  const forbidden: Odd = ({ kind }, response) =>
    kind === 'networkpolicies' && refuse(response, 403, 'Forbidden', 'cannot list');
  expect((await checked(forbidden)).limitations).toEqual([
    ...ALWAYS,
    `${refused}: the manager lacks the right to list networkpolicies of networking.k8s.io`,
  ]);
});

it.each<[string, Odd, RegExp]>([
  [
    'a namespace that is missing',
    ({ kind }, response) =>
      kind === 'pods' && refuse(response, 404, 'NotFound', 'namespaces "here" not found'),
    /^--runtime kubernetes: the namespace here does not exist$/,
  ],
  [
    'rights that are missing',
    ({ kind, body }, response) => {
      const { verb } = (body.spec?.resourceAttributes ?? {}) as { verb?: string };
      if (kind === 'pods' || verb !== 'delete') return false;
      response.end('{"metadata":{},"status":{"allowed":false}}');
      return true;
    },
    /the rights in namespace here are missing: delete pods, delete persistentvolumeclaims, delete secrets$/,
  ],
  [
    'no right at all',
    (_, response) => Boolean(response.end('{"metadata":{},"status":{"allowed":false}}')),
    /the rights in namespace here are missing \(is there such a namespace\?\): create pods, .*, list events$/,
  ],
  [
    'a page instead of an API',
    (_, response) => Boolean(response.end('<html>')),
    /^--runtime kubernetes: The Kubernetes API does not answer \(its answer is not JSON\)\.$/,
  ],
  [
    'a token that is not known',
    (_, response) => Boolean(response.writeHead(401).end()),
    /^--runtime kubernetes: the Kubernetes API refuses with HTTP 401$/,
  ],
])('%s ends the start with one line', async (_what, odd, message) => {
  await expect(checked(odd)).rejects.toMatchObject({
    name: 'StartError',
    message: expect.stringMatching(message),
  });
});
