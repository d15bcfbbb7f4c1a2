import type { Dimension, RatePolicy } from '../../contract/quotas.ts';
import type { Drawn } from './rate-authority.ts';

/** A rate quota that a request was charged against, and the decision. */
export interface Charged {
  dimension: Dimension;
  policy: RatePolicy;
  drawn: Drawn;
}

/** Structured fields allow integers of at most 15 digits. */
const FIELD_MAX = 999_999_999_999_999;

/**
 * `RateLimit-Policy` and `RateLimit` as the IETF draft defines them: quota and window of the policy in seconds, tokens
 * left and seconds until the next token. Source: contract section 7, the paragraph on errors.
 */
export function rateLimitHeaders(charged: readonly Charged[]): Record<string, string> {
  if (charged.length === 0) return {};
  const policies = charged.map(
    ({ dimension, policy }) =>
      `"${dimension}";q=${number(policy.limit_value)};w=${number(wholeSeconds(policy.interval_ms))}`,
  );
  const states = charged.map(
    ({ dimension, drawn }) =>
      `"${dimension}";r=${number(drawn.remaining)};t=${number(wholeSeconds(drawn.next_token_ms))}`,
  );
  return { 'ratelimit-policy': policies.join(', '), ratelimit: states.join(', ') };
}

/** The `X-RateLimit-…` headers of a 429, for older clients. */
export function refusalHeaders(limit: number, remaining: number): Record<string, string> {
  return { 'x-ratelimit-limit': String(limit), 'x-ratelimit-remaining': String(remaining) };
}

/** Milliseconds as whole seconds, rounded up so that a client that waits is not early. */
export function wholeSeconds(duration_ms: number): number {
  return Math.ceil(duration_ms / 1_000);
}

function number(value: number): string {
  return String(Math.min(value, FIELD_MAX));
}
