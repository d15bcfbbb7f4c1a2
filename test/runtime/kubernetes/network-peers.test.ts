import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { NetworkPeer, NetworkPolicy } from '../../../src/runtime/kubernetes/api/objects.ts';
import { BLOCK_ALL_LABEL, labelsOf } from '../../../src/runtime/kubernetes/names.ts';
import { gapIn } from '../../../src/runtime/kubernetes/network-policies.ts';

const LABELS = { ...labelsOf('sbx-1'), ...BLOCK_ALL_LABEL };
const name = 'kubernetes.io/metadata.name';

const policy = (at: number, rules: NetworkPeer[][]): NetworkPolicy => ({
  metadata: { name: `p${at}`, uid: 'u', resourceVersion: '1' },
  spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: rules.map((from) => ({ from })) },
});
const gapOf = (...policies: NetworkPeer[][][]) =>
  gapIn(
    policies.map((rules, at) => policy(at, rules)),
    LABELS,
    'sandboxes',
  );
const ip = (cidr: string, ...except: string[]): NetworkPeer => ({ ipBlock: { cidr, except } });
const app = { matchLabels: { app: 'manager' } };

it.each<[string, NetworkPeer[]]>([
  ['IPv4', [ip('0.0.0.0/0')]],
  ['IPv6', [ip('::/0')]],
  ['two halves', [ip('0.0.0.0/1'), ip('128.0.0.0/1')]],
  ['one half', [ip('128.0.0.0/1')]],
  ['all but a range', [ip('0.0.0.0/0', '10.0.0.0/8')]],
  ['the public IPv6 Internet', [ip('2000::/3')]],
  ['mapped addresses', [ip('::ffff:0:0/96')]],
  ['mapped addresses as IPv4 writes them', [ip('::ffff:0.0.0.0/97'), ip('::ffff:128.0.0.0/97')]],
  ['what cannot be read', [ip('0.0.0.0/00000')]],
  ['any namespace', [{ namespaceSelector: {} }]],
  ['any Pod of any namespace', [{ namespaceSelector: {}, podSelector: {} }]],
  ['a peer without anything', [{}]],
  [
    'all without a label',
    [{ namespaceSelector: { matchExpressions: [{ key: 'x', operator: 'DoesNotExist' }] } }],
  ],
  [
    'all but some',
    [{ namespaceSelector: { matchExpressions: [{ key: 'x', operator: 'NotIn', values: ['y'] }] } }],
  ],
])('what lets %s in lets everybody in', (_who, from) => {
  expect(gapOf([from])).toContain('the network policy p0 lets everybody reach');
});

it.each<[string, NetworkPeer]>([
  ['all Pods of the namespace', { podSelector: {} }],
  ['sandboxes', { podSelector: { matchLabels: { 'app.kubernetes.io/managed-by': 'sandbox-manager' } } }],
  [
    'sandboxes of a pool',
    { podSelector: { matchExpressions: [{ key: 'sandboxd.dev/pool', operator: 'Exists' }] } },
  ],
  [
    'all but the manager',
    { podSelector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['x'] }] } },
  ],
  ['the namespace by its name', { namespaceSelector: { matchLabels: { [name]: 'sandboxes' } } }],
  ['namespaces by a label that it may have', { namespaceSelector: { matchLabels: { team: 'a' } } }],
])('what lets %s in lets other sandboxes in', (_who, peer) => {
  expect(gapOf([[peer]])).toContain('the network policy p0 lets other sandboxes reach');
});

it.each<[string, NetworkPeer]>([
  ['a manager by its label', { podSelector: app }],
  ['a manager in any namespace', { namespaceSelector: {}, podSelector: app }],
  ['another namespace', { namespaceSelector: { matchLabels: { [name]: 'operations' } } }],
  [
    'some namespaces',
    { namespaceSelector: { matchExpressions: [{ key: name, operator: 'In', values: ['a', 'b'] }] } },
  ],
  ['an address', ip('203.0.113.7/32')],
  ['an IPv6 address', ip('2001:db8::7/128')],
  ['an address as IPv6 maps it', ip('::ffff:203.0.113.7/128')],
  ['a private network', ip('10.0.0.0/8', '10.244.0.0/16')],
])('%s is somebody', (_who, peer) => {
  expect(gapOf([[peer]])).toBeNull();
});

/** Parts that make a range together: each is the range, or both of its halves, made of parts again. */
const partsOf = (bits: number, depth: number): fc.Arbitrary<{ value: bigint; prefix: number }[]> => {
  const parts = (value: bigint, prefix: number, splits: boolean[]): { value: bigint; prefix: number }[] => {
    if (prefix >= depth || splits.pop() !== true) return [{ value, prefix }];
    const upper = value | (1n << BigInt(bits - prefix - 1));
    return [...parts(value, prefix + 1, splits), ...parts(upper, prefix + 1, splits)];
  };
  return fc.array(fc.boolean(), { maxLength: 60 }).map((splits) => parts(0n, 0, [...splits, true]));
};
const dotted = (value: bigint) => [24n, 16n, 8n, 0n].map((at) => (value >> at) & 255n).join('.');
const grouped = (value: bigint) =>
  Array.from({ length: 8 }, (_, at) => ((value >> BigInt(112 - 16 * at)) & 0xffffn).toString(16)).join(':');
const spelled = fc.oneof(
  partsOf(32, 12).map((parts) => parts.map(({ value, prefix }) => `${dotted(value)}/${prefix}`)),
  partsOf(32, 12).map((parts) => parts.map(({ value, prefix }) => `::ffff:${dotted(value)}/${96 + prefix}`)),
  partsOf(128, 12).map((parts) => parts.map(({ value, prefix }) => `${grouped(value)}/${prefix}`)),
);

it('everybody is everybody in any number of parts, rules and policies, less what is excepted and let in elsewhere', () => {
  fc.assert(
    fc.property(spelled, fc.infiniteStream(fc.nat(3)), (cidrs, random) => {
      const next = () => random.next().value as number;
      const policies: NetworkPeer[][][] = [[[]], [[], []]];
      const add = (peer: NetworkPeer) => policies[next() % 2]?.[0]?.push(peer);
      for (const cidr of cidrs) {
        // What one does not let in, another does.
        add(next() === 0 ? ip(cidr, cidr) : ip(cidr));
        if (next() !== 1) add(ip(cidr));
        else add(ip(cidr, ...(cidr.includes('.') ? ['192.0.2.0/24'] : ['2001:db8::/48'])));
      }
      expect(gapOf(...policies.map((rules) => rules.filter((from) => from.length > 0)))).toContain(
        'everybody',
      );
    }),
  );
});
