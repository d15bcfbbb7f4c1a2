/**
 * Wakes waiters when the state or the output of a process changes. A wake-up is only a hint: the waiter reads the
 * state itself. A waiter that takes the version before it reads misses no change.
 */
export class ChangeSignal {
  #version = 0;
  readonly #waiting = new Set<() => void>();

  /** The number of changes so far. */
  get version(): number {
    return this.#version;
  }

  /** Counts a change and wakes every waiter. */
  notify(): void {
    this.#version += 1;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Resolves when the version differs from `seen`, or `signal` aborts. */
  after(seen: number, signal?: AbortSignal): Promise<void> {
    if (this.#version !== seen || signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal?.addEventListener('abort', wake);
    });
  }
}
