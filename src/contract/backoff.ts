/** How waits grow between attempts. */
export interface Backoff {
  /** The first wait, in ms. */
  base_ms: number;
  /** By how much each wait is longer than the one before it. Default 2. */
  factor?: number;
  /** The longest wait before jitter, in ms. */
  max_ms: number;
  /** How far a wait may differ from its length at random, as a share of it: 0.2 is 80 % to 120 %. Default 0. */
  jitter?: number;
}

/**
 * The wait before the next attempt in ms, after `attempt` failures in a row (from 1): `base_ms`, times `factor` with each
 * further failure, up to `max_ms`, then spread by `jitter`. `random` is in [0, 1); 0.5 is no spread. Pure, and not rounded.
 */
export function backoffMs(
  attempt: number,
  { base_ms, factor = 2, max_ms, jitter = 0 }: Backoff,
  random = 0.5,
): number {
  return Math.min(base_ms * factor ** (attempt - 1), max_ms) * (1 + jitter * (2 * random - 1));
}
