import { divided, share } from '../../base/exact.ts';
import { BURST_MIN_BYTES } from '../../contract/network.ts';

const MICROSECONDS = 1_000_000;

/** A sandbox's own limit in one direction. */
export interface ByteRate {
  bytes_per_second: number;
  /** In bytes. 0 means one second of the rate; values below 64 KiB are raised to 64 KiB. */
  burst_bytes: number;
}

/** The number of bytes that may pass at once under a limit. */
export function burstOf({ bytes_per_second, burst_bytes }: ByteRate): number {
  return Math.max(BURST_MIN_BYTES, burst_bytes === 0 ? bytes_per_second : burst_bytes);
}

/** The size of a bucket's state: its whole tokens, the part of the next one in millionths, and its time. */
export const BUCKET_SLOTS = 3;

const TOKENS = 0;
const REST = 1;
const AT = 2;

/**
 * One sandbox's tokens in one direction; a token is a byte. Times are whole microseconds that never go back. A new
 * bucket is full; one with earlier state continues from it.
 */
export class TokenBucket {
  #rate: number;
  #burst: number;
  readonly #state: Float64Array;

  constructor(limit: ByteRate, now_us: number, state: Float64Array = new Float64Array(BUCKET_SLOTS)) {
    this.#rate = limit.bytes_per_second;
    this.#burst = burstOf(limit);
    this.#state = state;
    if (state[AT] === 0) state.set([this.#burst, 0, now_us]);
    else this.change(limit, now_us);
  }

  /** Whole tokens as of the last call. */
  get tokens(): number {
    return this.#state[TOKENS] as number;
  }

  /** Changes the limit; existing tokens are kept, up to the new burst. */
  change(limit: ByteRate, now_us: number): void {
    this.#refill(now_us);
    this.#rate = limit.bytes_per_second;
    this.#burst = burstOf(limit);
    this.#state[REST] = 0;
    this.#state[TOKENS] = Math.min(this.tokens, this.#burst);
  }

  /** Whether there are tokens for this many bytes. */
  has(bytes: number, now_us: number): boolean {
    // Also where there are enough: a full bucket must not gain later for the time in which it was full.
    this.#refill(now_us);
    return this.tokens >= bytes;
  }

  /** Takes tokens after `has` returned true. */
  take(bytes: number): void {
    this.#state[TOKENS] = this.tokens - bytes;
  }

  /** Microseconds until there are tokens for this many bytes, rounded up; infinite if there never will be. */
  waitUs(bytes: number, now_us: number): number {
    if (this.has(bytes, now_us)) return 0;
    if (this.#rate === 0 || bytes > this.#burst) return Number.POSITIVE_INFINITY;
    const missing = divided(bytes - this.tokens, this.#rate);
    const part = share(missing.rest, MICROSECONDS, this.#rate);
    return missing.whole * MICROSECONDS + part.whole + 1;
  }

  #refill(now_us: number): void {
    const at_us = this.#state[AT] as number;
    if (now_us <= at_us) return;
    this.#state[AT] = now_us;
    const elapsed = divided(now_us - at_us, MICROSECONDS);
    const part = share(elapsed.rest, this.#rate, MICROSECONDS);
    const rest = part.rest + (this.#state[REST] as number);
    const gained = elapsed.whole * this.#rate + part.whole + (rest >= MICROSECONDS ? 1 : 0);
    const is_full = gained >= this.#burst - this.tokens;
    this.#state[TOKENS] = is_full ? this.#burst : this.tokens + gained;
    this.#state[REST] = is_full ? 0 : rest % MICROSECONDS;
  }
}
