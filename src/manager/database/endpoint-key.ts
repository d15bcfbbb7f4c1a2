import { createHash } from 'node:crypto';

/** What health, order and concurrency count for: scheme, host, port and path. Source: contract section 7. */
export function endpointOf(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return endpointKey(`${protocol}//${host}${pathname}`);
}

/** The key of an endpoint: SHA-256 in lower-case hex. A URL may be longer than what an index holds. */
export function endpointKey(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
