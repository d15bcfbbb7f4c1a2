import type { IncomingHttpHeaders } from 'node:http';

/** Whether a request names itself one of a page of another site, in any copy of the header: Node joins them. */
export function isCrossSite(headers: IncomingHttpHeaders): boolean {
  return /(^|,) *cross-site *(,|$)/i.test(String(headers['sec-fetch-site'] ?? ''));
}
