import type { FastifyReply } from 'fastify';

/** The requests that a process works on, and those of them whose clients have gone. */
export class CallsUnderWay {
  /** Called whenever `left` changes. */
  onLeft: () => void = () => {};
  #count = 0;
  #left = 0;
  #waiting: (() => void)[] = [];

  /** How many work on although their clients have gone: each that hangs stays. */
  get left(): number {
    return this.#left;
  }

  /** Does the work of one request. */
  async run<Result>({ raw }: FastifyReply, work: () => Promise<Result>): Promise<Result> {
    let is_left = false;
    const leave = () => {
      is_left = true;
      this.#left += 1;
      this.onLeft();
    };
    this.#count += 1;
    raw.once('close', leave);
    try {
      return await work();
    } finally {
      raw.off('close', leave);
      if (is_left) {
        this.#left -= 1;
        this.onLeft();
      }
      this.#count -= 1;
      if (this.#count === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }

  /** Resolves once there is none. */
  whenDone(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#count === 0) resolve();
      else this.#waiting.push(resolve);
    });
  }
}
