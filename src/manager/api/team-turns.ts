import { LoopTurns } from '../../base/loop-turns.ts';

/**
 * Turns of teams at this program's one thread: of each team one request begins in a turn of the event loop, however many it has
 * sent, so that what others wait for is one request of each team and not all of one.
 */
export class TeamTurns {
  readonly #turns = new Map<string, LoopTurns>();

  /** Resolves in the team's turn: at once where it has begun nothing in this turn of the loop. */
  async take(team_id: string): Promise<void> {
    const turns = this.#turns.get(team_id) ?? new LoopTurns(() => this.#turns.delete(team_id));
    this.#turns.set(team_id, turns);
    await turns.taken();
  }
}
