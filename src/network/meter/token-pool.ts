import { BURST_MIN_BYTES } from '../../contract/network.ts';
import type { Reservation } from '../authority.ts';

const BLOCK_MS = 20;
const BLOCK_MAX_BYTES = 1024 * 1024;
/** Under a slow limit no more than this is leased at once, so that one packet does not wait for tokens of many. */
const SLOW_BLOCK_MS = 100;
const IDLE_US = 1_000_000;
const RETRY_US = 50_000;

/** The part of a team's limit in one direction that leasing needs; the authority has the whole policy. */
export interface TeamRate {
  /** 0 blocks all traffic. */
  bytes_per_second: number;
  /** Increases with each change of the policy. */
  version: number;
}

/** A pool's way to the authority; the reply arrives later, through `answer`. */
export interface PoolRequests {
  /** Requests this many bytes. */
  reserve: (bytes: number) => void;
  /** Returns bytes that were not used. */
  giveBack: (bytes: number) => void;
}

/** Whether there are tokens; `asking`: the authority has not answered yet. */
export type PoolAnswer = 'yes' | 'no' | 'asking';

type Lease =
  | { state: 'none' }
  | { state: 'asked'; bytes: number }
  | { state: 'coming'; bytes: number; at_us: number }
  | { state: 'retry'; at_us: number };

const NO_LEASE: Lease = { state: 'none' };

/**
 * One team's tokens in one direction on this node, leased from the authority in blocks. A block is reserved first and
 * used only after the delay that the authority returned, so that no byte passes before its token exists.
 */
export class TokenPool {
  readonly #requests: PoolRequests;
  readonly #is_fail_open: boolean;
  #rate: TeamRate | null;
  #tokens = 0;
  #lease: Lease = NO_LEASE;
  #used_us = 0;
  #is_unreachable = false;

  /** A `rate` of null is unlimited. `is_fail_open`: everything passes while the authority cannot be reached. */
  constructor(rate: TeamRate | null, requests: PoolRequests, is_fail_open: boolean) {
    this.#rate = rate;
    this.#requests = requests;
    this.#is_fail_open = is_fail_open;
  }

  /** Tokens available. */
  get tokens(): number {
    return this.#tokens;
  }

  /** When the pool's next scheduled work is due, in microseconds; infinite if there is none. */
  get wake_us(): number {
    if (this.#lease.state === 'coming' || this.#lease.state === 'retry') return this.#lease.at_us;
    return this.#tokens > 0 && this.#lease.state === 'none'
      ? this.#used_us + IDLE_US
      : Number.POSITIVE_INFINITY;
  }

  /** Whether it has no scheduled work and is waiting for no answer. */
  get is_at_rest(): boolean {
    return this.#lease.state === 'none' && this.#tokens === 0;
  }

  /** Changes the policy; bytes reserved for later under the old one are returned. */
  change(rate: TeamRate | null): void {
    if (rate?.version === this.#rate?.version) return;
    this.#rate = rate;
    if (this.#lease.state !== 'coming') return;
    this.#requests.giveBack(this.#lease.bytes);
    this.#lease = NO_LEASE;
  }

  /** Whether this many bytes may pass now. Requests the next block when it is time. */
  has(bytes: number, now_us: number): PoolAnswer {
    if (this.#rate === null) return 'yes';
    if (this.#rate.bytes_per_second === 0) return 'no';
    this.#arrive(now_us);
    const block = this.#blockFor(bytes);
    if (this.#lease.state === 'none' && (this.#tokens < bytes || this.#tokens < block / 2)) this.#ask(block);
    if (this.#tokens >= bytes || this.#isOpen()) return 'yes';
    return this.#lease.state === 'asked' && !this.#is_unreachable ? 'asking' : 'no';
  }

  /** Takes tokens after `has` allowed it. Returns how many bytes passed without a token because quotas fail open. */
  take(bytes: number, now_us: number): number {
    if (this.#rate === null) return 0;
    this.#used_us = now_us;
    const taken = Math.min(bytes, this.#tokens);
    this.#tokens -= taken;
    return bytes - taken;
  }

  /** Handles the authority's answer to the last request. If nothing was reserved, the request is repeated later. */
  answer(reservation: Reservation, now_us: number): void {
    this.#is_unreachable = reservation.outcome === 'unreachable';
    if (this.#lease.state !== 'asked') return;
    const is_reserved = reservation.outcome === 'reserved';
    const delay_us = is_reserved ? Math.ceil(reservation.delay_ms * 1_000) : RETRY_US;
    const at_us = now_us + delay_us;
    this.#lease = is_reserved
      ? { state: 'coming', bytes: this.#lease.bytes, at_us }
      : { state: 'retry', at_us };
    this.#used_us = Math.max(this.#used_us, at_us);
    this.#arrive(now_us);
  }

  /** Does what is due: accepts a reserved block, or returns tokens that were unused for a second. */
  tick(now_us: number): void {
    this.#arrive(now_us);
    if (this.#lease.state === 'none' && now_us - this.#used_us >= IDLE_US) this.giveBack();
  }

  /** Returns all tokens, available and reserved. */
  giveBack(): void {
    const coming = this.#lease.state === 'coming' ? this.#lease.bytes : 0;
    if (coming > 0) this.#lease = NO_LEASE;
    const bytes = this.#tokens + coming;
    this.#tokens = 0;
    if (bytes > 0) this.#requests.giveBack(bytes);
  }

  #isOpen(): boolean {
    return this.#is_fail_open && this.#is_unreachable;
  }

  #arrive(now_us: number): void {
    const lease = this.#lease;
    if ((lease.state !== 'coming' && lease.state !== 'retry') || lease.at_us > now_us) return;
    if (lease.state === 'coming') this.#tokens += lease.bytes;
    this.#lease = NO_LEASE;
  }

  #ask(bytes: number): void {
    this.#lease = { state: 'asked', bytes };
    this.#requests.reserve(bytes);
  }

  #blockFor(bytes: number): number {
    const rate = this.#rate?.bytes_per_second ?? 0;
    const block = Math.min(BLOCK_MAX_BYTES, Math.max(BURST_MIN_BYTES, Math.floor((rate * BLOCK_MS) / 1_000)));
    const slow = Math.floor((rate * SLOW_BLOCK_MS) / 1_000);
    return Math.max(bytes, Math.min(block, slow));
  }
}
