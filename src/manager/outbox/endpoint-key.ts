import { createHash } from 'node:crypto';

/** The endpoint of a URL, by which health, order and concurrency are tracked: scheme, host, port and path, hashed. Source: contract section 7. */
export function endpointOf(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return endpointKey(`${protocol}//${host}${pathname}`);
}

/** The key of an endpoint: SHA-256 in lower-case hex. A URL may be too long for an index. */
export function endpointKey(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
