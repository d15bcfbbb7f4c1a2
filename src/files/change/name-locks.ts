import { ApiError } from '../../contract/errors.ts';
import type { NamedIn } from './put-in-place.ts';

/**
 * The names that are being changed: what a request finds under a name that it holds stays there until it has changed it, as
 * far as requests that take the same locks are concerned. A name is known by its directory itself, however that is spelled.
 */
export class NameLocks {
  /** Of each name that is held: those that wait for it, in their order. */
  readonly #waiting = new Map<string, (() => void)[]>();

  /**
   * Holds names until it is disposed of, once nobody else does. Throws `invalid_request` if the signal aborts before that:
   * whoever hangs holds up only requests for the same name, and these only as long as their clients wait.
   */
  async hold(names: readonly NamedIn[], signal?: AbortSignal): Promise<Disposable> {
    using taken = new DisposableStack();
    // In one order, so that no two wait for each other.
    for (const key of [...new Set(names.map(keyOf))].sort()) {
      await this.#take(key, signal);
      taken.defer(() => this.#release(key));
    }
    return taken.move();
  }

  async #take(key: string, signal: AbortSignal | undefined): Promise<void> {
    const waiting = this.#waiting.get(key);
    if (!waiting) {
      this.#waiting.set(key, []);
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      const place = waiting.indexOf(resolve);
      if (place < 0) return;
      waiting.splice(place, 1);
      reject(new ApiError('invalid_request', 'The client has gone.'));
    };
    waiting.push(resolve);
    signal?.addEventListener('abort', leave);
    if (signal?.aborted) leave();
    await promise.finally(() => signal?.removeEventListener('abort', leave));
  }

  #release(key: string): void {
    const next = this.#waiting.get(key)?.shift();
    if (next) next();
    else this.#waiting.delete(key);
  }
}

function keyOf({ directory, name }: NamedIn): string {
  const { dev, ino } = directory.stat;
  return `${dev}:${ino}/${name}`;
}
