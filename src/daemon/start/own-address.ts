import { lookup } from 'node:dns/promises';
import { BlockList, isIPv4 } from 'node:net';
import { networkInterfaces } from 'node:os';

/** Wildcard addresses: as a destination each means this machine. */
const UNSPECIFIED = ['0.0.0.0', '::'];

/**
 * Whether a URL leads to one of the daemon's own listeners, in any spelling: each delivery there would cause the next
 * event. `bound` and `port` are the listeners'. A name that does not resolve now is not own. Source: contract section 3.
 */
export async function isOwnAddress(url: URL, bound: string[], port: number): Promise<boolean> {
  const url_port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  if (url_port !== port) return false;
  const name = url.hostname.replace(/^\[|\]$|\.$/g, '');
  if (name === 'localhost' || name.endsWith('.localhost')) return true;
  const resolved = await lookup(name, { all: true }).catch(() => []);
  const own = ownAddresses(bound);
  return resolved.some(({ address, family }) => own.check(address, family === 6 ? 'ipv6' : 'ipv4'));
}

/** An IPv4-mapped address is checked as the IPv4 address that it carries. */
function ownAddresses(bound: string[]): BlockList {
  const own = new BlockList();
  const add = (address: string) => own.addAddress(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  for (const address of [...UNSPECIFIED, ...bound]) add(address);
  if (bound.some((each) => UNSPECIFIED.includes(each))) {
    for (const { address } of Object.values(networkInterfaces()).flatMap((all) => all ?? [])) add(address);
    own.addSubnet('127.0.0.0', 8);
  }
  return own;
}
