import { SandboxdError } from '../../client/error.ts';
import type { Context } from '../context.ts';
import { requestSignal } from '../signal.ts';

const FORWARDED = ['SIGINT', 'SIGTERM'] as const;

/** Forwards SIGINT and SIGTERM from this program to a process, including those that arrive before its start. */
export class SignalForwarding {
  /** Aborts, with the error as its reason, if a signal cannot be forwarded. */
  readonly failed: AbortSignal;
  readonly #context: Context;
  readonly #failure = new AbortController();
  readonly #waiting: string[] = [];
  #process_id: string | null = null;

  constructor(context: Context) {
    this.#context = context;
    this.failed = this.#failure.signal;
    for (const name of FORWARDED) process.on(name, this.#forward);
  }

  /** Names the process; signals that have arrived before are sent now. */
  to(process_id: string): void {
    this.#process_id = process_id;
    for (const name of this.#waiting.splice(0)) this.#forward(name);
  }

  /** Stops forwarding. */
  end(): void {
    for (const name of FORWARDED) process.off(name, this.#forward);
  }

  readonly #forward = (name: string): void => {
    if (this.#process_id === null) {
      this.#waiting.push(name);
      return;
    }
    requestSignal(this.#context, this.#process_id, name).catch((error: unknown) => {
      // A conflict means that the process has ended, which its exit event reports.
      if (!(error instanceof SandboxdError && error.code === 'conflict')) this.#failure.abort(error);
    });
  };
}
