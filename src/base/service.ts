import type { Log } from './log.ts';

/** Something that runs in the background. */
export interface Service {
  /** Resolves when it runs. */
  start(): Promise<void>;
  /** Resolves when it has ended. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Parts that start in order and stop in reverse. A part whose start fails is not stopped, unless it was added before;
 * `stop` or `abandon` then stops the parts before it.
 */
export class ServiceGroup {
  readonly #running: Pick<Service, 'stop'>[] = [];
  #stopping: Promise<void> | null = null;

  /** Starts a service as the next of the group. Throws its error. */
  async start<Part extends Service>(service: Part): Promise<Part> {
    await service.start();
    return this.add(service);
  }

  /** Adds a part that runs already, or that is to be stopped even if its start fails. */
  add<Part extends Pick<Service, 'stop'>>(part: Part): Part {
    this.#running.push(part);
    return part;
  }

  /** Stops every part, the last one first, even if one fails; then throws the first error. Idempotent. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  /** Stops every part after a start that failed. An error is logged, because that of the start is to be kept. */
  async abandon(log: Log): Promise<void> {
    await this.stop().catch(({ message: reason }: Error) => {
      log.error({ reason }, 'a part of a failed start could not be stopped');
    });
  }

  async #stopAll(): Promise<void> {
    const errors: unknown[] = [];
    for (const part of this.#running.reverse()) {
      await part.stop().catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  }
}
