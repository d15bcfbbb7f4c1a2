import { isIP } from 'node:net';

/** An IP address as its bits, most significant first. */
export interface IpAddress {
  family: 4 | 6;
  bits: bigint;
}

/** A range of addresses: those that share the first `length_bits` bits with `address`. */
export interface Cidr {
  address: IpAddress;
  length_bits: number;
}

const WIDTH_BITS = { 4: 32, 6: 128 } as const;

/** Reads an address as resolvers and `URL.hostname` write it, with an optional zone and brackets; null for anything else. */
export function parseAddress(text: string): IpAddress | null {
  const plain = text.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  const family = isIP(plain);
  if (family === 4) return { family, bits: bitsOfIPv4(plain) };
  return family === 6 ? { family, bits: bitsOfIPv6(plain) } : null;
}

/** Reads `10.0.0.0/8`, `fd00::/8` or a single address, null for anything else; bits after the prefix are ignored. */
export function parseCidr(text: string): Cidr | null {
  const [start = '', length, ...rest] = text.split('/');
  const address = /[[\]%]/.test(start) ? null : parseAddress(start);
  if (!address || rest.length > 0) return null;
  const width_bits = WIDTH_BITS[address.family];
  if (length === undefined) return { address, length_bits: width_bits };
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > width_bits) return null;
  return { address, length_bits: Number(length) };
}

/** A range in the form that `parseCidr` reads. */
export function cidrText({ address: { family, bits }, length_bits }: Cidr): string {
  const [width_bits, group_bits] = family === 4 ? [32, 8] : [128, 16];
  const groups = Array.from({ length: width_bits / group_bits }, (_, i) => {
    const group = (bits >> BigInt(width_bits - (i + 1) * group_bits)) & ((1n << BigInt(group_bits)) - 1n);
    return group.toString(family === 4 ? 10 : 16);
  });
  return `${groups.join(family === 4 ? '.' : ':')}/${length_bits}`;
}

/** Whether a range contains an address. */
export function contains({ address, length_bits }: Cidr, { family, bits }: IpAddress): boolean {
  if (address.family !== family) return false;
  const rest_bits = BigInt(WIDTH_BITS[family] - length_bits);
  return address.bits >> rest_bits === bits >> rest_bits;
}

/** The IPv4 address in an IPv6 address, `above_end_bits` above its end. */
export function embeddedIPv4({ bits }: IpAddress, above_end_bits: number): IpAddress {
  return { family: 4, bits: (bits >> BigInt(above_end_bits)) & 0xffff_ffffn };
}

function bitsOfIPv4(text: string): bigint {
  return text.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
}

function bitsOfIPv6(text: string): bigint {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  if (dotted) {
    const low = bitsOfIPv4(dotted[2] as string);
    return bitsOfIPv6(`${dotted[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`);
  }
  const [head, tail] = text.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array(8 - (head?.length ?? 0) - (tail?.length ?? 0)).fill('0');
  const groups = [...(head ?? []), ...zeros, ...(tail ?? [])];
  return groups.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}
