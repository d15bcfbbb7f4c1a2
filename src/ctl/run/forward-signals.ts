import { DaemonError } from '../api/client.ts';
import type { Context } from '../context.ts';
import { requestSignal } from '../signal.ts';

const FORWARDED = ['SIGINT', 'SIGTERM'] as const;

/** Hands the SIGINT and SIGTERM that this program gets on to a process, also those that come before it is started. */
export class SignalForwarding {
  /** Aborts, with the failure, where a signal cannot be handed on. */
  readonly failed: AbortSignal;
  readonly #context: Context;
  readonly #failure = new AbortController();
  readonly #waiting: string[] = [];
  #process_id: string | null = null;

  constructor(context: Context) {
    this.#context = context;
    this.failed = this.#failure.signal;
    for (const name of FORWARDED) process.on(name, this.#take);
  }

  to(process_id: string): void {
    this.#process_id = process_id;
    for (const name of this.#waiting.splice(0)) this.#take(name);
  }

  end(): void {
    for (const name of FORWARDED) process.off(name, this.#take);
  }

  readonly #take = (name: string): void => {
    if (this.#process_id === null) {
      this.#waiting.push(name);
      return;
    }
    requestSignal(this.#context, this.#process_id, name).catch((error: unknown) => {
      // It has ended: that is told in its turn.
      if (!(error instanceof DaemonError && error.code === 'conflict')) this.#failure.abort(error);
    });
  };
}
