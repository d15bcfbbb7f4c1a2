import { lookup } from 'node:dns/promises';
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
  return resolved.some(({ address }) => isOwn(plain(address), bound));
}

function isOwn(address: string, bound: string[]): boolean {
  if (bound.includes(address) || UNSPECIFIED.includes(address)) return true;
  if (!bound.some((each) => UNSPECIFIED.includes(each))) return false;
  const own = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map((each) => each.address));
  return own.includes(address) || address.startsWith('127.');
}

/** Converts an IPv4-mapped IPv6 address to IPv4. */
function plain(address: string): string {
  const dotted = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (dotted) return dotted;
  const hex = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(address);
  if (!hex) return address;
  const [high, low] = [Number.parseInt(hex[1] as string, 16), Number.parseInt(hex[2] as string, 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
