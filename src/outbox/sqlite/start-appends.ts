import type { Append } from '../store.ts';

/** The most appends with events of processes that a start makes in the main thread. */
const PROCESS_APPENDS_MAX = 8;

/**
 * Tells the appends of a start, which the main thread commits: up to the first `sandbox.ready` a few events of processes,
 * such as the start of a main command. A start would otherwise wait for the writer thread.
 */
export class StartAppends {
  #process_appends = 0;
  #is_over = false;

  /** Whether an append belongs to the start. */
  includes({ tree, drafts }: Append): boolean {
    if (tree || this.#is_over) return false;
    if (drafts.every(({ event_type }) => event_type === 'sandbox.ready')) {
      this.#is_over = true;
      return true;
    }
    this.#process_appends += 1;
    const is_few = this.#process_appends <= PROCESS_APPENDS_MAX;
    return is_few && drafts.every(({ event_type }) => event_type.startsWith('process.'));
  }
}
