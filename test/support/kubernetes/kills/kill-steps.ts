/** When a manager is killed: before a call reaches its target, or once it was carried out and before the manager knows. */
export type Moment = 'before' | 'after';

/** The calls by which a manager changes something: recorded in one run, and those at which it is killed in others. */
export class KillSteps {
  #recorded: string[] = [];
  #kill: { step: string; moment: Moment; by: () => Promise<void> } | null = null;

  /** From now on calls are recorded, and none is one to be killed at. */
  record(): void {
    this.#recorded = [];
    this.#kill = null;
  }

  /** The steps since `record` or `killAt`: what was called, and the how many-th of its name it was. */
  get recorded(): string[] {
    return this.#recorded;
  }

  /** Kills at a step from now on, once. */
  killAt(step: string, moment: Moment, by: () => Promise<void>): void {
    this.record();
    this.#kill = { step, moment, by };
  }

  /** Whether the step has been reached. */
  get is_killed(): boolean {
    return this.#kill === null;
  }

  /** To be told of every call; returns the step that it is. */
  begin(call: string): string {
    const count = this.#recorded.filter((each) => each.startsWith(`${call} #`)).length;
    const step = `${call} #${count + 1}`;
    this.#recorded.push(step);
    return step;
  }

  /** A call that was refused has changed nothing, and is no step: a second one takes its place. */
  refused(step: string): void {
    const at = this.#recorded.lastIndexOf(step);
    if (at >= 0) this.#recorded.splice(at, 1);
  }

  /** Kills if this is the step and the moment; true if it was, and the call is to go no further. */
  async kills(step: string, moment: Moment): Promise<boolean> {
    const kill = this.#kill;
    if (kill?.step !== step || kill.moment !== moment) return false;
    this.#kill = null;
    await kill.by();
    return true;
  }
}
