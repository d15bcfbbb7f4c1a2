import { sameLimits, type TeamLimits, teamRates } from './attachment.ts';
import type { ByteAuthority } from './authority.ts';
import type { PerDirection } from './directions.ts';
import type { ByteLender } from './meter/meter-handle.ts';
import type { TeamRate } from './meter/token-pool.ts';

const UNLIMITED: TeamLimits = { egress: null, ingress: null };

/** The limits of the teams that have a sandbox on this node. */
export class Teams {
  readonly #limits = new Map<string, TeamLimits>();
  readonly #rates = new Map<string, PerDirection<TeamRate | null>>();
  /** Increases with each change. */
  #version = 0;

  /** Sets a team's limits. Returns whether they changed. */
  change(team_id: string, limits: TeamLimits): boolean {
    const known = this.#limits.get(team_id);
    if (known && sameLimits(known, limits)) return false;
    this.#limits.set(team_id, limits);
    this.#rates.set(team_id, teamRates(limits, ++this.#version));
    return true;
  }

  /** Whether a team has a sandbox here. */
  has(team_id: string): boolean {
    return this.#limits.has(team_id);
  }

  /** A team's limits; unlimited for an unknown team. */
  limitsOf(team_id: string): TeamLimits {
    return this.#limits.get(team_id) ?? UNLIMITED;
  }

  /** A team's limits in the meter's form. */
  ratesOf(team_id: string): PerDirection<TeamRate | null> {
    return this.#rates.get(team_id) ?? teamRates(UNLIMITED, this.#version);
  }

  /** Forgets a team without sandboxes. */
  forget(team_id: string): void {
    this.#limits.delete(team_id);
    this.#rates.delete(team_id);
  }

  /** Lends an authority's bytes under the current limits. */
  lender(authority: ByteAuthority): ByteLender {
    return {
      reserve: async (team_id, direction, bytes) => {
        const policy = this.limitsOf(team_id)[direction];
        if (!policy) return { outcome: 'reserved', delay_ms: 0 };
        return await authority.reserve(team_id, direction, policy, bytes);
      },
      giveBack: (team_id, direction, bytes) => {
        const policy = this.limitsOf(team_id)[direction];
        if (policy) authority.giveBack(team_id, direction, policy, bytes);
      },
    };
  }
}
