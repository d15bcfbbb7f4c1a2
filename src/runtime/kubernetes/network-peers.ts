import { isIP } from 'node:net';
import type { LabelSelector, NetworkPeer } from './api/objects.ts';
import { MANAGED } from './names.ts';
import { selects } from './selectors.ts';

/** The label that every namespace has its name by. Source: Kubernetes, "Automatic labelling". */
const NAMESPACE_NAME = 'kubernetes.io/metadata.name';
/** How many addresses are somebody: as many as 10.0.0.0/8 has, and an IPv6 provider's /32. More are everybody. */
const ADDRESSES_MAX = { 4: 1n << 24n, 6: 1n << 96n } as const;
const BITS = { 4: 32, 6: 128 } as const;
/** IPv4 addresses as IPv6 has them. Source: RFC 4291, section 2.5.5.2. */
const MAPPED = 0xffffn << 32n;

type Family = 4 | 6;

/** The addresses from the first to the last. */
interface Range {
  family: Family;
  first: bigint;
  last: bigint;
}

/**
 * Whom the peers of ingress rules let in, where that is more than a manager: `everybody`, `other sandboxes`, or null. All
 * peers of all rules are judged together, as they add up. `namespace`: the one of the rules.
 */
export function strangersIn(peers: NetworkPeer[], namespace: string): 'everybody' | 'other sandboxes' | null {
  const blocks = peers.flatMap(({ ipBlock }) => ipBlock ?? []);
  const pods = peers.filter(({ ipBlock }) => ipBlock === undefined || ipBlock === null);
  if (pods.some(isAnybody) || areMany(blocks)) return 'everybody';
  return pods.some((peer) => hasSandboxes(peer, namespace)) ? 'other sandboxes' : null;
}

/** Whether a peer names nobody: what it asks of labels, everything that has none fulfils, in any namespace. */
function isAnybody({ namespaceSelector, podSelector }: NetworkPeer): boolean {
  // Without a selector of namespaces it is about this one.
  if (!namespaceSelector) return !podSelector;
  return selects(namespaceSelector, {}) && (!podSelector || selects(podSelector, {}));
}

/** Whether a peer chooses Pods of sandboxes; where a namespace's labels would decide, which nobody here knows, it may. */
function hasSandboxes({ namespaceSelector, podSelector }: NetworkPeer, namespace: string): boolean {
  if (namespaceSelector && excludes(namespaceSelector, namespace)) return false;
  return !podSelector || mayChoose(podSelector, MANAGED);
}

/** Whether a selector of namespaces cannot choose the one of this name. */
function excludes({ matchLabels = {}, matchExpressions = [] }: LabelSelector, namespace: string): boolean {
  const labels = { [NAMESPACE_NAME]: namespace };
  const name = matchLabels[NAMESPACE_NAME];
  if (name !== undefined && name !== namespace) return true;
  return matchExpressions.some(
    (expression) => expression.key === NAMESPACE_NAME && !selects({ matchExpressions: [expression] }, labels),
  );
}

/** Whether a selector chooses Pods with these labels, whatever others they have that are the product's own or nobody's. */
function mayChoose(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Record<string, string>,
): boolean {
  const is_own = (key: string) => key in labels || key.startsWith('sandboxd.dev/');
  if (
    !Object.entries(matchLabels).every(([key, value]) =>
      key in labels ? labels[key] === value : is_own(key),
    )
  ) {
    return false;
  }
  return matchExpressions.every((expression) => {
    const { key } = expression;
    return is_own(key) && !(key in labels) ? true : selects({ matchExpressions: [expression] }, labels);
  });
}

/** Whether blocks have more addresses together than somebody has; one that cannot be read has all. */
function areMany(blocks: NonNullable<NetworkPeer['ipBlock']>[]): boolean {
  const ranges: Range[] = [];
  for (const { cidr, except } of blocks) {
    const range = rangeOf(cidr);
    if (range === null) return true;
    ranges.push(
      ...without(
        range,
        (except ?? []).flatMap((each) => rangeOf(each) ?? []),
      ),
    );
  }
  return ([4, 6] as const).some((family) => {
    const of_family = ranges.filter((range) => range.family === family);
    return addressesIn(of_family) > ADDRESSES_MAX[family];
  });
}

/** How many addresses ranges of one family have, each counted once. */
function addressesIn(ranges: Range[]): bigint {
  let count = 0n;
  let seen = -1n;
  for (const { first, last } of ranges.sort((a, b) => (a.first < b.first ? -1 : 1))) {
    const from = first > seen ? first : seen + 1n;
    if (last < from) continue;
    count += last - from + 1n;
    seen = last;
  }
  return count;
}

function without(range: Range, holes: Range[]): Range[] {
  let left = [range];
  for (const hole of holes) {
    if (hole.family !== range.family) continue;
    left = left.flatMap(({ family, first, last }) => {
      if (hole.last < first || hole.first > last) return [{ family, first, last }];
      const below = { family, first, last: hole.first - 1n };
      const above = { family, first: hole.last + 1n, last };
      return [below, above].filter((each) => each.first <= each.last);
    });
  }
  return left;
}

/** The addresses of a CIDR; null for what is none. Mapped IPv4 addresses are IPv4. */
function rangeOf(cidr: string): Range | null {
  const [, address = '', prefix = ''] = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(cidr) ?? [];
  const family = isIP(address) as Family | 0;
  if (family === 0 || Number(prefix) > BITS[family]) return null;
  const free = BigInt(BITS[family] - Number(prefix));
  const first = (numberOf(address, family) >> free) << free;
  const last = first + (1n << free) - 1n;
  if (family === 6 && first >> 32n === MAPPED >> 32n && free <= 32n) {
    return { family: 4, first: first - MAPPED, last: last - MAPPED };
  }
  return { family, first, last };
}

function numberOf(address: string, family: Family): bigint {
  if (family === 4) return address.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
  // What ends as IPv4 does is two groups.
  const [, before = address, dotted] = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address) ?? [];
  const low = dotted === undefined ? null : numberOf(dotted, 4);
  const groups =
    low === null ? before : `${before}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  const [head = '', tail] = groups.split('::');
  const parts = (text: string) => text.split(':').filter((part) => part !== '');
  const [left, right] = [parts(head), parts(tail ?? '')];
  const all = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right];
  return all.reduce((sum, part) => (sum << 16n) | BigInt(`0x${part}`), 0n);
}
