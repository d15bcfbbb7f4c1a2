import type { Clock } from '../../base/clock.ts';
import { ApiError } from '../../contract/errors.ts';
import type { Fence } from '../../runtime/runtime.ts';
import type { Operation } from '../database/tables.ts';
import type { NumberedOperation } from './sandbox-store.ts';

/**
 * An operation that this replica carries out, for as long as its lease lasts: by the boot clock, from before the lease was
 * asked for, so that a replica that was frozen notices first of all that another may have taken it over.
 */
export class HeldOperation implements Fence, NumberedOperation {
  readonly sandbox_id: string;
  readonly operation: Operation | null;
  readonly operation_fence: number;
  readonly #clock: Clock;
  #until_ms: number;
  #is_lost = false;

  /** `until_ms`: by the boot clock. */
  constructor({ sandbox_id, operation, operation_fence }: NumberedOperation, clock: Clock, until_ms: number) {
    this.sandbox_id = sandbox_id;
    this.operation = operation;
    this.operation_fence = operation_fence;
    this.#clock = clock;
    this.#until_ms = until_ms;
  }

  /** See `Fence`. */
  get number(): number {
    return this.operation_fence;
  }

  /** Whether it was found to be another's, or may be: what this replica has made of it is then to be undone. */
  get is_lost(): boolean {
    return this.#is_lost;
  }

  /** False once it was lost, or its lease has ended. */
  isHeld(): boolean {
    return !this.#is_lost && this.#clock.boot().ms < this.#until_ms;
  }

  /** See `Fence`. */
  async check(_step: string): Promise<void> {
    if (!this.isHeld()) throw this.lose();
  }

  /** The database has renewed the lease of its sandbox's operation, which may be another by now. */
  renewed(operation_fence: number, until_ms: number): void {
    if (operation_fence === this.operation_fence) this.#until_ms = until_ms;
    else this.lose();
  }

  /** See `Fence`: notes that it may be another's. */
  lose(): ApiError {
    this.#is_lost = true;
    const said = 'The operation took too long, and another replica has taken it over.';
    return new ApiError('unavailable', said, { retry_after_s: 1 });
  }
}
