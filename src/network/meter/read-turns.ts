/** Packets that a team's sandboxes read together in one step: less than a millisecond of the meter's time. */
const TEAM_PACKETS = 64;
/** Packets that a sandbox reads in a step while no other has any. */
const ALONE_PACKETS = 128;
/** Packets that a sandbox reads at least, once it has its turn. */
const PARTY_PACKETS_MIN = 8;

/**
 * Who of those with waiting packets reads how many of them in one step. Each team reads as many as any other, however
 * many of its sandboxes are busy; within a team they take turns.
 */
export class ReadTurns<Party extends { team_id: string }> {
  #step = 0;

  /** The parties in the order of their turns, each with the most that it reads now. */
  next(ready: readonly Party[]): [party: Party, packets: number][] {
    const [first] = ready;
    if (first === undefined) return [];
    // A step often has a packet or two of one sandbox alone, and must cost little.
    if (ready.length === 1) return [[first, ALONE_PACKETS]];
    this.#step += 1;
    const teams = [...Map.groupBy(ready, ({ team_id }) => team_id).values()];
    return rotated(teams, this.#step).flatMap((parties): [Party, number][] => {
      const count = Math.min(parties.length, TEAM_PACKETS / PARTY_PACKETS_MIN);
      const packets = Math.floor(TEAM_PACKETS / count);
      return rotated(parties, this.#step * count)
        .slice(0, count)
        .map((party) => [party, packets]);
    });
  }
}

function rotated<Item>(items: readonly Item[], by: number): Item[] {
  const start = by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}
