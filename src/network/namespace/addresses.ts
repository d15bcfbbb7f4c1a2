import { createHash } from 'node:crypto';

/** The number of sandboxes that a node has addresses for. */
export const SANDBOXES_MAX = 2 ** 15;

/** The addresses of all sandboxes and of the node's ends of their links; they are local to this node. */
export const SANDBOX_CIDRS = { ipv4: '10.251.0.0/16', ipv6: 'fd73:6264::/64' } as const;

/** The names of the node's ends of all links, as the packet filter matches them. */
export const LINK_PATTERN = 'vsbx*';

const LINK = /^vsbx(\d+)$/;

/** The link between the node and one sandbox: two interfaces, each with an address of both families. */
export interface Link {
  /** From 0 to `SANDBOXES_MAX` − 1. */
  index: number;
  /** The interface on the node. */
  interface: string;
  node: Addresses;
  sandbox: Addresses;
}

/** The addresses of one end. */
export interface Addresses {
  ipv4: string;
  ipv6: string;
  ethernet: string;
}

/** The link whose end on the node has this name; null if that is none. */
export function linkNamed(name: string): Link | null {
  const index = Number(LINK.exec(name)?.[1] ?? Number.NaN);
  return Number.isInteger(index) && index < SANDBOXES_MAX ? linkOf(index) : null;
}

/** The link with this number. */
export function linkOf(index: number): Link {
  const host = index * 2;
  const ipv4 = (number: number) => `10.251.${number >> 8}.${number & 255}`;
  const ipv6 = (number: number) => `fd73:6264::1:${number.toString(16)}`;
  const octet = (number: number) => number.toString(16).padStart(2, '0');
  const ethernet = (number: number) => `02:73:62:00:${octet(number >> 8)}:${octet(number & 255)}`;
  return {
    index,
    interface: `vsbx${index}`,
    node: { ipv4: ipv4(host), ipv6: ipv6(host), ethernet: ethernet(host) },
    sandbox: { ipv4: ipv4(host + 1), ipv6: ipv6(host + 1), ethernet: ethernet(host + 1) },
  };
}

/**
 * The number of the link that a namespace gets at this attempt, from 0 on: spread evenly, so that managers that know
 * nothing of each other seldom try the same one.
 */
export function linkIndex(namespace: string, attempt: number): number {
  const hash = createHash('sha256').update(namespace).digest();
  return (hash.readUInt32BE() + attempt) % SANDBOXES_MAX;
}
