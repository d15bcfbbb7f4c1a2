import { BlockList } from 'node:net';
import {
  EMBEDDING_IPV6,
  NON_PUBLIC_IPV4,
  NON_PUBLIC_IPV6,
  PUBLIC_IPV6,
} from '../../contract/address-ranges.ts';
import { SANDBOX_CIDRS } from './addresses.ts';

/** Addresses that sandboxes may not reach, as matches of the packet filter on the node. */

const IPV4_BITS = 32;
const IPV6_BITS = 128;

const LINK_LOCAL = ['169.254.0.0/16', 'fe80::/10'];
/** Cloud metadata services, which hand out the machine's secrets, beyond the link-local addresses. */
const METADATA_IPV4 = ['100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'];
const METADATA_IPV6 = ['fd00:ec2::254/128', 'fd20:ce::254/128'];

/** Ranges that are of one kind, so that a range within one of them opens nothing else. */
const OF_ONE_KIND = [SANDBOX_CIDRS.ipv4, SANDBOX_CIDRS.ipv6, ...LINK_LOCAL].map((range) => {
  const { start, length_bits, family } = partsOf(range);
  const addresses = new BlockList();
  addresses.addSubnet(start, length_bits, family);
  return { length_bits, family, addresses };
});

/** Matches of link-local addresses and metadata services. */
export const METADATA_MATCHES = matches(withEmbedding([...LINK_LOCAL, ...METADATA_IPV4, ...METADATA_IPV6]));

/** Matches of everything that is not public. */
export const NON_PUBLIC_MATCHES = [
  ...matches([...withEmbedding(NON_PUBLIC_IPV4), ...NON_PUBLIC_IPV6]),
  `ip6 daddr != { ${[PUBLIC_IPV6, ...EMBEDDING_IPV6.map(({ range }) => range)].join(', ')} }`,
];

/**
 * Ranges of `--allow-sandbox-cidr`. `named`: single addresses, and ranges of sandboxes' or link-local addresses alone; they
 * also open the node's own addresses, other sandboxes and metadata services. `wide`: all others, which open networks.
 */
export function allowedRanges(cidrs: readonly string[]): { named: string[]; wide: string[] } {
  const { named = [], wide = [] } = Object.groupBy(cidrs, (cidr) => (isNamed(cidr) ? 'named' : 'wide'));
  return { named: withEmbedding(named), wide: withEmbedding(wide) };
}

function isNamed(cidr: string): boolean {
  const { start, length_bits, family } = partsOf(cidr);
  if (length_bits === (family === 'ipv4' ? IPV4_BITS : IPV6_BITS)) return true;
  return OF_ONE_KIND.some(
    (range) =>
      range.family === family && length_bits >= range.length_bits && range.addresses.check(start, family),
  );
}

function partsOf(cidr: string) {
  const [start = '', length] = cidr.split('/');
  const family = start.includes(':') ? ('ipv6' as const) : ('ipv4' as const);
  const width_bits = family === 'ipv4' ? IPV4_BITS : IPV6_BITS;
  return { start, family, length_bits: length === undefined ? width_bits : Number(length) };
}

/** Ranges with the IPv6 ranges that lead to those of IPv4. */
function withEmbedding(cidrs: readonly string[]): string[] {
  return cidrs.flatMap((cidr) => {
    const { start, length_bits, family } = partsOf(cidr);
    if (family === 'ipv6') return [cidr];
    const [a = 0, b = 0, c = 0, d = 0] = start.split('.').map(Number);
    const groups = [(a << 8) | b, (c << 8) | d].map((group) => group.toString(16)).join(':');
    const embedded = EMBEDDING_IPV6.map(({ above_end_bits, holding }) => {
      const bits = IPV6_BITS - above_end_bits - IPV4_BITS + length_bits;
      return `${holding(groups)}/${bits}`;
    });
    return [cidr, ...embedded];
  });
}

function matches(cidrs: readonly string[]): string[] {
  const { ip = [], ip6 = [] } = Object.groupBy(cidrs, (cidr) => (cidr.includes(':') ? 'ip6' : 'ip'));
  return [`ip daddr { ${ip.join(', ')} }`, `ip6 daddr { ${ip6.join(', ')} }`];
}
