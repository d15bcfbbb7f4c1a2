import { promises as dns, type LookupAddress, lookup as systemLookup } from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import pLimit from 'p-limit';

/** Resolves a name to its addresses; rejects with the platform's error codes. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

const HOSTS = '/etc/hosts';
/** The timeout of one query to one name server, and how often it is sent. */
const QUESTION_MS = 1_500;
const QUESTIONS = 2;
/** Concurrent look-ups by the platform: each takes one of its few threads. */
const PLATFORM_MAX = 2;

interface ResolveParts {
  hosts?: string;
  platform?: Resolve;
  /** The machine's own where there are none. */
  servers?: string[];
}

/** Resolves with `dns.lookup`, on the few threads that file operations use too. */
export const platformResolve: Resolve = (hostname) =>
  new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)));
  });

/**
 * Makes a resolver that needs no threads, so that thousands of names that hang delay no other: the hosts file, then
 * the name servers. Where those know no such name, as with a short one, the platform is asked.
 */
export function threadlessResolve({
  hosts = HOSTS,
  platform = platformResolve,
  servers = [],
}: ResolveParts = {}): Resolve {
  const limit = pLimit(PLATFORM_MAX);
  return async (hostname) => {
    const name = hostname.replace(/\.$/, '').toLowerCase();
    const known = fromHosts(name, hosts);
    if (known.length > 0) return known;
    // A new resolver each time: the name servers may have changed.
    const resolver = new dns.Resolver({ timeout: QUESTION_MS, tries: QUESTIONS });
    if (servers.length > 0) resolver.setServers(servers);
    const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found = [...addressesOf(four, 4), ...addressesOf(six, 6)];
    if (found.length > 0) return found;
    const codes = [four, six].map((each) => (each.status === 'rejected' ? String(each.reason.code) : ''));
    if (codes.every((code) => code === 'ENOTFOUND' || code === 'ENODATA'))
      return limit(() => platform(hostname));
    throw Object.assign(new Error(`${name} cannot be resolved`), { code: 'EAI_AGAIN' });
  };
}

function addressesOf(result: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return result.status === 'fulfilled' ? result.value.map((address) => ({ address, family })) : [];
}

function fromHosts(name: string, path: string): LookupAddress[] {
  try {
    return addressesInHosts(name, readFileSync(path, 'utf8'));
  } catch {
    return [];
  }
}

/** The addresses that a hosts file has for a name in lower case. */
export function addressesInHosts(name: string, text: string): LookupAddress[] {
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = (line.split('#')[0] as string).trim().split(/\s+/);
    const family = isIP(address);
    return family && names.some((each) => each.toLowerCase() === name) ? [{ address, family }] : [];
  });
}
