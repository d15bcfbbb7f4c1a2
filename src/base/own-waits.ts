import type { Options } from 'p-retry';

/** Options of p-retry where the caller decides when to stop, and waits itself, on our clock, in `onFailedAttempt`. */
export const OWN_WAITS = {
  retries: Number.POSITIVE_INFINITY,
  minTimeout: 0,
} satisfies Options;
