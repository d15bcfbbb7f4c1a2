/**
 * Turns of teams at this program's one thread: of each team one request begins in a turn of the event loop, however many are
 * waiting, so that what other teams wait for is one request of each and not all that one team has sent. A team that is
 * alone begins as many as it could: its turns follow each other without a pause.
 */
export class TeamTurns {
  /** Of each team that has begun one in this turn: those that wait for the next ones, in order. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #is_scheduled = false;

  /** Resolves in the team's turn; at once where it has begun nothing in this turn of the loop. */
  async take(team_id: string): Promise<void> {
    const waiting = this.#waiting.get(team_id);
    if (waiting) return new Promise((resolve) => waiting.push(resolve));
    this.#waiting.set(team_id, []);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#is_scheduled) return;
    this.#is_scheduled = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    this.#is_scheduled = false;
    for (const [team_id, waiting] of this.#waiting) {
      const begin = waiting.shift();
      if (begin) begin();
      else this.#waiting.delete(team_id);
    }
    if (this.#waiting.size > 0) this.#schedule();
  }
}
