import { expect, it } from 'vitest';
import { NON_PUBLIC_IPV4 } from '../../../src/contract/address-ranges.ts';
import type {
  LabelSelector,
  NetworkPeer,
  NetworkPolicy,
} from '../../../src/runtime/kubernetes/api/objects.ts';
import { BLOCK_ALL_LABEL, labelsOf } from '../../../src/runtime/kubernetes/names.ts';
import { strangersIn } from '../../../src/runtime/kubernetes/network-peers.ts';
import { gapIn } from '../../../src/runtime/kubernetes/network-policies.ts';
import { selects } from '../../../src/runtime/kubernetes/selectors.ts';
import { manifestPolicies } from '../../support/kubernetes/manifest-policies.ts';

const PLAIN = labelsOf('sbx-1');
const LABELS = { ...PLAIN, ...BLOCK_ALL_LABEL };

const policy = (name: string, spec: Partial<NetworkPolicy['spec']>): NetworkPolicy => ({
  metadata: { name, uid: name, resourceVersion: '1' },
  spec: { podSelector: {}, ...spec },
});
/** The one that let every sandbox out, before there was another mode. */
const BEFORE = policy('sandboxes', {
  podSelector: { matchLabels: { 'app.kubernetes.io/managed-by': 'sandbox-manager' } },
  policyTypes: ['Ingress', 'Egress'],
  ingress: [{ from: [{}] }],
  egress: [{}],
});
const CLOSED = policy('closed', { policyTypes: ['Ingress', 'Egress'] });

it('the manifests let a sandbox with block-all send nothing, and any other what they say', () => {
  const policies = manifestPolicies();
  expect(gapIn(policies, LABELS, 'sandboxes')).toBeNull();
  const out = (labels: Record<string, string>) =>
    policies
      .filter(({ spec }) => selects(spec.podSelector, labels) && spec.policyTypes?.includes('Egress'))
      .map(({ metadata, spec }) => [metadata.name, spec.egress?.length ?? 0]);
  expect(out(LABELS)).toEqual([['sandboxes-block-all', 0]]);
  expect(out(PLAIN)).toEqual([['sandboxes-allow-all', 2]]);
  const blocks = policies.flatMap(({ spec }) => spec.egress ?? []).flatMap(({ to }) => to ?? []);
  expect(blocks.flatMap(({ ipBlock }) => ipBlock ?? [])).toEqual([
    { cidr: '0.0.0.0/0', except: NON_PUBLIC_IPV4 },
  ]);
  const into = policies.filter(
    ({ spec }) => selects(spec.podSelector, LABELS) && spec.policyTypes?.includes('Ingress'),
  );
  const from = [{ podSelector: { matchLabels: { 'app.kubernetes.io/name': 'sandbox-manager' } } }];
  expect(into.map(({ spec }) => spec.ingress)).toEqual([[{ from, ports: [{ port: 49984 }] }]]);
});

it('the manifests let nobody to the manager but who an administrator names, and no sandbox to addresses that may be the cluster', () => {
  const chosen = manifestPolicies().filter(({ spec }) =>
    selects(spec.podSelector, { 'app.kubernetes.io/name': 'sandbox-manager' }),
  );
  const peers = chosen.flatMap(({ spec }) => (spec.ingress ?? []).map(({ from }) => from));
  expect([chosen.map(({ spec }) => spec.policyTypes), peers.length]).toEqual([[['Ingress']], 1]);
  expect(
    strangersIn(
      peers.flatMap((from) => from ?? []),
      'sandboxes',
    ),
  ).toBeNull();
  const out = manifestPolicies().flatMap(({ spec }) => (spec.egress ?? []) as { to?: NetworkPeer[] }[]);
  const ranges = out.flatMap(({ to }) => (to ?? []).flatMap(({ ipBlock }) => ipBlock?.cidr ?? []));
  expect(ranges).toEqual(['0.0.0.0/0']);
});

it.each<[string, NetworkPolicy[], string | null]>([
  ['none', [], 'no network policy keeps Pods with the label sandboxd.dev/network=block-all from sending'],
  ['that of before', [BEFORE], 'the network policy sandboxes lets'],
  [
    'that of before beside the new ones',
    [...manifestPolicies(), BEFORE],
    'the network policy sandboxes lets',
  ],
  ['one that closes all', [CLOSED], null],
  [
    'names for everybody',
    [CLOSED, policy('dns', { egress: [{}], policyTypes: ['Egress'] })],
    'policy dns lets',
  ],
  ['types that are implied', [policy('both', { egress: [] })], null],
  [
    'none for what comes in',
    [policy('out', { policyTypes: ['Egress'] })],
    'no network policy keeps others from',
  ],
  [
    'one that lets everybody in',
    [CLOSED, policy('in', { policyTypes: ['Ingress'], ingress: [{ from: [] }] })],
    'the network policy in lets everybody reach',
  ],
  ['one of other Pods', [policy('other', { podSelector: { matchLabels: { a: 'b' } } })], 'no network policy'],
])('of the policies %s it is said what they leave open', (_what, policies, gap) => {
  const found = gapIn(policies, LABELS, 'sandboxes');
  if (gap === null) expect(found).toBeNull();
  else expect(found).toContain(gap);
});

it.each<[LabelSelector, boolean]>([
  [{}, true],
  [{ matchLabels: { a: '1' } }, true],
  [{ matchLabels: { a: '1', b: '1' } }, false],
  [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['1', '2'] }] }, true],
  [{ matchExpressions: [{ key: 'b', operator: 'In', values: ['1'] }] }, false],
  [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }, false],
  [{ matchExpressions: [{ key: 'b', operator: 'NotIn', values: ['1'] }] }, true],
  [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }, true],
  [{ matchExpressions: [{ key: 'b', operator: 'Exists' }] }, false],
  [{ matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }, false],
  [{ matchLabels: { a: '1' }, matchExpressions: [{ key: 'b', operator: 'DoesNotExist' }] }, true],
])('the selector %j chooses {a: 1}: %s', (selector, is_chosen) => {
  expect(selects(selector, { a: '1' })).toBe(is_chosen);
});
