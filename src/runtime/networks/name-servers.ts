import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

/** Where the host's name servers are told: systemd's stub, on a loopback address, tells its own elsewhere. */
export const RESOLVER_FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'];

/** How names are resolved on the host, as far as sandboxes can do it too. */
export interface NameResolution {
  /** The addresses of name servers that can be reached from outside their machine. */
  name_servers: string[];
  /** If there are none: the address of one on the host's own loopback interface; else null. */
  local_name_server: string | null;
  /** The other lines: `search`, `options`. */
  settings: string[];
}

/** Reads the first of these files that names a server. */
export function readNameServers(paths: readonly string[] = RESOLVER_FILES): NameResolution {
  const read = paths.map((path) => parse(contentOf(path)));
  const usable = read.find(({ outside }) => outside.length > 0);
  const { settings = [] } = usable ?? read[0] ?? {};
  const [local = null] = usable ? [] : read.flatMap(({ loopback }) => loopback);
  return { name_servers: usable?.outside ?? [], local_name_server: local, settings };
}

function parse(content: string) {
  const lines = content.split('\n').map((line) => line.trim());
  const servers = lines.flatMap((line) => /^nameserver\s+(\S+)/.exec(line)?.[1] ?? []);
  return {
    // A link-local address of IPv6 is one of an interface that sandboxes do not have.
    outside: servers.filter(
      (address) => isIP(address) !== 0 && !isLoopback(address) && !address.includes('%'),
    ),
    loopback: servers.filter((address) => isIP(address) === 4 && isLoopback(address)),
    settings: lines.filter((line) => /^(search|domain|options)\s/.test(line)),
  };
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1' || address === '0.0.0.0';
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
