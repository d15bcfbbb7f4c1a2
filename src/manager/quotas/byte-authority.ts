import type { RatePolicy } from '../../contract/quotas.ts';
import type { ByteAuthority, Reservation } from '../../network/authority.ts';
import type { Direction } from '../../network/directions.ts';
import type { BucketName, RateAuthority } from './rate-authority.ts';

const DIMENSION_OF = { egress: 'network_egress_bytes', ingress: 'network_ingress_bytes' } as const;

/** Lends teams' bytes to this node from the buckets of the rate quotas. Source: contract section 7, "Network". */
export class QuotaByteAuthority implements ByteAuthority {
  readonly #authority: RateAuthority;

  constructor(authority: RateAuthority) {
    this.#authority = authority;
  }

  /** See ByteAuthority. */
  async reserve(
    team_id: string,
    direction: Direction,
    policy: RatePolicy,
    bytes: number,
  ): Promise<Reservation> {
    const answer = await this.#authority.reserve(nameOf(team_id, direction), policy, bytes);
    if (answer.outcome !== 'reserved') return { outcome: answer.outcome };
    return { outcome: 'reserved', delay_ms: answer.delay_ms };
  }

  /** See ByteAuthority. */
  giveBack(team_id: string, direction: Direction, policy: RatePolicy, bytes: number): void {
    void this.#authority.reserve(nameOf(team_id, direction), policy, -bytes);
  }
}

function nameOf(team_id: string, direction: Direction): BucketName {
  return { team_id, dimension: DIMENSION_OF[direction] };
}
