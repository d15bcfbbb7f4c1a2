/** Where a port is at the manager, and what its server can call itself. */
export interface PortPlace {
  port: number;
  /** The path of the port at the manager, without a slash at the end. */
  prefix: string;
  /** The `Host` of the caller's request. */
  host: string;
}

/**
 * A server's `Location`, as a path below that of its port; null if it leads anywhere else. A client that follows it sends
 * the token of its user along, to whatever path of the manager a sandbox names. `path` is the request's own, at the server.
 */
export function ownLocation(
  location: string,
  path: string,
  { port, prefix, host }: PortPlace,
): string | null {
  const base = `http://localhost:${port}`;
  let url: URL;
  try {
    url = new URL(location, new URL(path, base));
  } catch {
    return null;
  }
  const is_web = url.protocol === 'http:' || url.protocol === 'https:';
  if (!is_web || url.username !== '' || url.password !== '') return null;
  const { pathname, search, hash } = url;
  const is_prefixed = pathname.startsWith(`${prefix}/`);
  // Servers that heed X-Forwarded-Prefix or X-Forwarded-Host have found it themselves.
  if (is_prefixed && (isOwnHost(url.host, port) || url.host === host)) return `${pathname}${search}${hash}`;
  return isOwnHost(url.host, port) ? `${prefix}${pathname}${search}${hash}` : null;
}

function isOwnHost(host: string, port: number): boolean {
  // The URL parser leaves a port 80 out.
  const suffix = port === 80 ? '' : `:${port}`;
  return [`localhost${suffix}`, `127.0.0.1${suffix}`, `[::1]${suffix}`].includes(host);
}
