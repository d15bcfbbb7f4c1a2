/**
 * Tells waiters that something about a process has changed: its state, or its output. A wake-up is only a hint;
 * the waiter looks for itself. Whoever notes the version before looking misses no change.
 */
export class ChangeSignal {
  #version = 0;
  readonly #waiting = new Set<() => void>();

  get version(): number {
    return this.#version;
  }

  notify(): void {
    this.#version += 1;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Resolves when the version is another than `seen`, or `signal` aborts. */
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
