import { isIP } from 'node:net';

/** A name server. */
export interface NameServer {
  address: string;
  port: number;
}

/** What resolv.conf(5) says. */
export interface ResolverSettings {
  servers: NameServer[];
  /** Domains in which names that have few dots are looked for. */
  search: string[];
  /** A name with this many dots is asked for as it is first. */
  ndots: number;
}

const PORT = 53;
const SERVERS_MAX = 3;
const SEARCH_MAX = 6;
const NDOTS_MAX = 15;

/** Parses resolv.conf(5), with ports as c-ares takes them (`[address]:port`). Without name servers, the local one. */
export function parseResolverSettings(text: string): ResolverSettings {
  const settings: ResolverSettings = { servers: [], search: [], ndots: 1 };
  for (const line of text.split('\n')) {
    const [key, ...words] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/);
    if (key === 'nameserver') settings.servers.push(...serverOf(words[0] ?? ''));
    // The last of these lines counts.
    else if (key === 'search') settings.search = words.slice(0, SEARCH_MAX);
    else if (key === 'domain') settings.search = words.slice(0, 1);
    else if (key === 'options') {
      const [, digits] = words.map((word) => /^ndots:(\d{1,2})$/.exec(word)).findLast((found) => found) ?? [];
      if (digits !== undefined) settings.ndots = Math.min(Number(digits), NDOTS_MAX);
    }
  }
  settings.servers.splice(SERVERS_MAX);
  if (settings.servers.length === 0) settings.servers.push({ address: '127.0.0.1', port: PORT });
  return settings;
}

/** The names to ask for, one after the other. */
export function namesToAsk(name: string, { search, ndots }: ResolverSettings): string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const extended = search.map((domain) => `${name}.${domain.replace(/^\.|\.$/g, '')}`);
  return name.split('.').length > ndots ? [name, ...extended] : [...extended, name];
}

function serverOf(text: string): NameServer[] {
  const [, bare = text, port] =
    /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(text) ?? /^([\d.]+):(\d{1,5})$/.exec(text) ?? [];
  return isIP(bare) ? [{ address: bare, port: Number(port ?? PORT) }] : [];
}
