import type { Server } from 'node:http';
import { type Clock, LATE_MS } from '../clock.ts';

/** The limits of a request's time, as Node has them, and how often it checks them. */
export interface RequestLimits {
  headers_ms: number;
  request_ms: number;
  check_ms: number;
}

/**
 * Sets a server's limits so that no client is refused because this program was stopped or frozen: they do not hold for the
 * longest of them after a check that is late. Node reads them with each check.
 */
export function limitRequests(server: Server, clock: Clock, limits: RequestLimits): void {
  let checked_ms = clock.monotonicMs();
  let spared_until_ms = Number.NEGATIVE_INFINITY;
  const isSpared = () => {
    const now_ms = clock.monotonicMs();
    if (now_ms - checked_ms > limits.check_ms + LATE_MS) spared_until_ms = now_ms + limits.request_ms;
    checked_ms = now_ms;
    return now_ms < spared_until_ms;
  };
  // The check reads this one first.
  Object.defineProperty(server, 'headersTimeout', { get: () => (isSpared() ? 0 : limits.headers_ms) });
  Object.defineProperty(server, 'requestTimeout', { get: () => (isSpared() ? 0 : limits.request_ms) });
}
