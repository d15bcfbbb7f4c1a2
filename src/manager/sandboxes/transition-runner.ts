import type { Updateable } from 'kysely';
import type { RuntimeChange } from '../../runtime/runtime.ts';
import type { Transaction } from '../database/database.ts';
import type { Operation, SandboxTable } from '../database/tables.ts';
import type { OperationRecovery } from './operation-recovery.ts';
import { type Operations, refusal, runtimeLost, type Works } from './operations.ts';
import type { SandboxRow } from './sandbox-store.ts';
import type { Verb } from './transitions.ts';

/** The sandbox of a team; `team_id` null where the manager itself acts. */
export interface SandboxRef {
  sandbox_id: string;
  team_id: string | null;
}

/** What a transition changes in a record. */
export type Changes = Updateable<SandboxTable>;

/** One transition: what its first commit checks and adds, what the runtime does, what its last commit changes. */
export interface Steps {
  admit?: (tx: Transaction) => Promise<void>;
  onBegin?: (tx: Transaction, row: SandboxRow) => Promise<void>;
  carryOut: (row: SandboxRow) => Promise<RuntimeChange>;
  changes: (row: SandboxRow, now_ms: number) => Changes;
  onEnd: (tx: Transaction, row: SandboxRow, now_ms: number) => Promise<void>;
}

/**
 * Takes a sandbox through a transition: a commit that begins it, the runtime, a commit that ends it. What the runtime
 * or the last commit refuses is settled. Errors: `not_found`, `conflict`, and what the runtime throws.
 */
export class TransitionRunner {
  readonly #works: Works;
  readonly #operations: Operations;
  readonly #settler: OperationRecovery;

  constructor(works: Works, operations: Operations, settler: OperationRecovery) {
    this.#works = works;
    this.#operations = operations;
    this.#settler = settler;
  }

  /** Gives the sandbox as it is afterwards. */
  async run(named: SandboxRef, verb: Exclude<Verb, 'delete'>, steps: Steps): Promise<SandboxRow> {
    const { store, clock, metrics } = this.#works;
    const begun = await store.write(async (tx) => {
      await steps.admit?.(tx);
      const where = { ...named, now_ms: clock.wallMs() };
      const row = await store.begin(tx, verb, where, this.#operations.lease());
      if ('refused' in row) throw refusal(row);
      await steps.onBegin?.(tx, row);
      return row;
    });
    return this.#operations.run(named.sandbox_id, async () => {
      try {
        const ended = await this.#carryOut(begun, steps);
        metrics.transitions.add([verb, 'done']);
        return ended;
      } catch (error) {
        metrics.transitions.add([verb, 'failed']);
        throw error;
      }
    });
  }

  async #carryOut(row: SandboxRow, steps: Steps): Promise<SandboxRow> {
    const { store, clock } = this.#works;
    const operation = row.operation as Operation;
    try {
      if ((await steps.carryOut(row)) === 'lost') throw runtimeLost();
      const now_ms = clock.wallMs();
      return await store.write(async (tx) => {
        const changes = { ...steps.changes(row, now_ms), updated_at_ms: now_ms };
        const ended = await this.#operations.end(tx, row.sandbox_id, operation, changes);
        await steps.onEnd(tx, ended, now_ms);
        return ended;
      });
    } catch (error) {
      await this.#settler.settle(row);
      throw error;
    }
  }
}
