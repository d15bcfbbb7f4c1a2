import type { RatePolicy } from '../contract/quotas.ts';
import type { Direction } from './directions.ts';

/** The answer to a reservation. */
export type Reservation =
  /** The bytes are reserved and may pass `delay_ms` after the answer. */
  | { outcome: 'reserved'; delay_ms: number }
  /** Nothing is reserved: the limit is 0, or the authority cannot be reached. */
  | { outcome: 'refused' | 'unreachable' };

/**
 * Lends byte tokens to nodes from one bucket per team and direction, shared by all nodes. Source: contract section 7,
 * "Network".
 */
export interface ByteAuthority {
  /**
   * Reserves bytes, including ones that the bucket has yet to gain; reservations of all nodes are queued in order.
   * `delay_ms` is the time until the bucket has gained them, rounded up. Never rejects, and answers within 100 ms.
   */
  reserve(team_id: string, direction: Direction, policy: RatePolicy, bytes: number): Promise<Reservation>;
  /** Returns bytes that were reserved and not used. They are lost if the authority cannot be reached. */
  giveBack(team_id: string, direction: Direction, policy: RatePolicy, bytes: number): void;
}
