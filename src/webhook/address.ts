import { BlockList, isIP } from 'node:net';

/** An IP address in the form that `URL.hostname` gives it, without brackets and zone: one text for one address. */
export interface IpAddress {
  family: 'ipv4' | 'ipv6';
  text: string;
}

/** A range of addresses: those that share the first `length_bits` bits with `start`. */
export interface Cidr {
  family: IpAddress['family'];
  start: string;
  length_bits: number;
}

const WIDTH_BITS = { ipv4: 32, ipv6: 128 } as const;
const GROUP_BITS = 16;

/** Reads an address as resolvers and `URL.hostname` write it, with an optional zone and brackets; null for anything else. */
export function parseAddress(text: string): IpAddress | null {
  const plain = text.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  const family = isIP(plain);
  if (family === 4) return { family: 'ipv4', text: plain };
  return family === 6 ? { family: 'ipv6', text: new URL(`http://[${plain}]`).hostname.slice(1, -1) } : null;
}

/** Reads `10.0.0.0/8`, `fd00::/8` or a single address, null for anything else; bits after the prefix are ignored. */
export function parseCidr(text: string): Cidr | null {
  const [start = '', length, ...rest] = text.split('/');
  const address = /[[\]%]/.test(start) ? null : parseAddress(start);
  if (!address || rest.length > 0) return null;
  const { family } = address;
  const width_bits = WIDTH_BITS[family];
  if (length === undefined) return { family, start, length_bits: width_bits };
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > width_bits) return null;
  return { family, start, length_bits: Number(length) };
}

/** A range in the form that `parseCidr` reads. */
export function cidrText({ start, length_bits }: Cidr): string {
  return `${start}/${length_bits}`;
}

/** Some ranges of addresses. */
export class AddressRanges {
  /** One list for each family: the platform takes an IPv4 address for the same as its IPv4-mapped IPv6 address. */
  readonly #lists = { ipv4: new BlockList(), ipv6: new BlockList() };

  constructor(ranges: readonly Cidr[]) {
    for (const { family, start, length_bits } of ranges) {
      this.#lists[family].addSubnet(start, length_bits, family);
    }
  }

  /** Whether one of the ranges contains an address. */
  contains({ family, text }: IpAddress): boolean {
    return this.#lists[family].check(text, family);
  }
}

/** The eight groups of an IPv6 address. */
export function groupsOf({ text }: IpAddress): number[] {
  const [head = [], tail = []] = text.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array(WIDTH_BITS.ipv6 / GROUP_BITS - head.length - tail.length).fill('0');
  return [...head, ...zeros, ...tail].map((group) => Number.parseInt(group, 16));
}

/** The IPv4 address in an IPv6 address, `above_end_bits` above its end: a multiple of 16. */
export function embeddedIPv4(address: IpAddress, above_end_bits: number): IpAddress {
  const end = (WIDTH_BITS.ipv6 - above_end_bits) / GROUP_BITS;
  const octets = groupsOf(address)
    .slice(end - 2, end)
    .flatMap((group) => [group >> 8, group & 0xff]);
  return { family: 'ipv4', text: octets.join('.') };
}
