import type { RatePolicy } from '../contract/quotas.ts';
import type { Direction } from './directions.ts';

/** The answer to a reservation. */
export type Reservation =
  /** The bytes are taken, and may pass after `delay_ms` from the moment of the answer. */
  | { outcome: 'reserved'; delay_ms: number }
  /** Nothing is taken: the limit is 0, or the authority cannot be reached. */
  | { outcome: 'refused' | 'unreachable' };

/**
 * Who lends a team's bytes to the nodes: one bucket for each team and direction, which all nodes share.
 * Source: contract section 7, "Network".
 */
export interface ByteAuthority {
  /**
   * Takes so many bytes, also from what the bucket will gain, one after the other for all nodes; `delay_ms` is the
   * time until the bucket has gained them, rounded up. Never rejects, and answers within 100 ms.
   */
  reserve(team_id: string, direction: Direction, policy: RatePolicy, bytes: number): Promise<Reservation>;
  /** Puts back bytes that were reserved and not used. They are lost where the authority cannot be reached. */
  giveBack(team_id: string, direction: Direction, policy: RatePolicy, bytes: number): void;
}
