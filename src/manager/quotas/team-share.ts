/** Amounts of one resource of the node, all in its unit. */
export interface SharedAmounts {
  /** What all sandboxes together may take. */
  budget: number;
  /** What one team may keep while another holds something; see `shareOf`. */
  share: number;
  /** What the team holds, */
  held: number;
  /** and the part of it that has shares: of memory that of paused sandboxes, of disk all. */
  kept: number;
  /** What all others hold. */
  others: number;
}

/**
 * A team's share of a budget: a part of it in percent, but never less than `least`, which one sandbox takes, because a
 * share in which none fits would serve nobody.
 */
export function shareOf(budget: number, percent: number, least: number): number {
  return Math.min(budget, Math.max(least, Math.floor((budget * percent) / 100)));
}

/**
 * What the node, and what its bound, leaves a team; it may take the smaller. Negative where more is held. A team that is
 * alone may exceed its share, but leaves another share free, so that a team that comes later is served. Source: contract
 * section 7, "Shares of teams".
 */
export function leftOf(amounts: SharedAmounts): { node: number; team: number } {
  const { budget, share, held, kept, others } = amounts;
  const within = share - kept;
  const alone = budget - share - held;
  return { node: budget - held - others, team: others > 0 ? within : Math.max(within, alone) };
}
