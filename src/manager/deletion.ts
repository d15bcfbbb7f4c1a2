import { CatalogueError } from '../contract/errors.ts';
import type { HandOverPage } from '../runtime/runtime.ts';
import { Limiter } from './limiter.ts';
import { type Operations, refusal, senderOf, type Works } from './operations.ts';
import type { DeletionNotice } from './ports.ts';
import type { SandboxRow } from './sandbox-store.ts';

/** Sandboxes that are ended and removed at the same time, and those of one team: a daemon may refuse to end. */
const CLEANUPS_MAX = 16;
const CLEANUPS_PER_TEAM = 8;

type Reason = Exclude<DeletionNotice['reason'], 'runtime_lost'>;

/**
 * Deletes sandboxes: one commit says so, queues the signed `sandbox.deleted` and frees the capacity; ending and
 * removing what ran follows, and waits for no consumer. Source: contract section 7, DELETE, and below.
 */
export class Deletions {
  readonly #works: Works;
  readonly #operations: Operations;
  readonly #limiter = new Limiter(CLEANUPS_MAX, CLEANUPS_PER_TEAM);
  #is_stopped = false;

  constructor(works: Works, operations: Operations) {
    this.#works = works;
    this.#operations = operations;
  }

  /** Commits a deletion; one that is committed already stays as it is. Throws `not_found`, `conflict`. */
  async delete(
    sandbox_id: string,
    team_id: string,
    { reason, actor }: { reason: Reason; actor: string | null },
  ): Promise<void> {
    const { store, metrics, notices } = this.#works;
    const found = await store.find(store.db, sandbox_id, team_id);
    if (!found) throw new CatalogueError('not_found', 'There is no such sandbox.');
    if (found.status === 'terminating') return;
    const is_lost = found.status === 'failed' || (await this.#isLost(sandbox_id));
    const row = await this.#commit(found, is_lost ? 'runtime_lost' : reason, actor);
    if (!row) return;
    metrics.transitions.add(['delete', 'done']);
    notices.wake();
    void this.clean(row);
  }

  /** A deletion does not need the runtime's answer: without one it is taken to run. */
  async #isLost(sandbox_id: string): Promise<boolean> {
    const { runtime, log } = this.#works;
    try {
      return !(await runtime.isAlive(sandbox_id));
    } catch (error) {
      log.warn({ sandbox_id, reason: (error as Error).message }, 'the runtime does not tell of a sandbox');
      return false;
    }
  }

  /** Null where another caller was faster. */
  async #commit(
    { sandbox_id, team_id }: SandboxRow,
    reason: DeletionNotice['reason'],
    actor: string | null,
  ): Promise<SandboxRow | null> {
    const { store, clock, seal, notices, metering } = this.#works;
    const now_ms = clock.wallMs();
    return store.write(async (tx) => {
      const row = await store.begin(tx, 'delete', { sandbox_id, team_id, now_ms }, this.#operations.lease());
      if ('refused' in row) {
        if (row.status === 'terminating') return null;
        throw refusal(row);
      }
      await metering.ended(tx, sandbox_id, reason === 'runtime_lost' ? 'last_seen' : now_ms);
      const sender = senderOf(row, seal);
      if (sender) await notices.sandboxDeleted(tx, { ...sender, reason, actor, happened_at_ms: now_ms });
      return row;
    });
  }

  /** Ends and removes what ran, when its turn comes. Never rejects. */
  async clean(row: SandboxRow): Promise<void> {
    if (this.#operations.isUnderWay(row.sandbox_id)) return;
    await this.#operations.run(row.sandbox_id, () => this.#limiter.run(row.team_id, () => this.#clean(row)));
  }

  /** Begins no further cleanup; those that are left go on in whoever takes them over. */
  stop(): void {
    this.#is_stopped = true;
  }

  /** Every step may be repeated by whoever takes over; what fails now is repeated when its lease has ended. */
  async #clean(row: SandboxRow): Promise<void> {
    const { runtime, store, clock, log, metrics, seal, replica } = this.#works;
    const { sandbox_id } = row;
    if (this.#is_stopped) return;
    try {
      await runtime.end(sandbox_id);
      const sender = senderOf(row, seal);
      for await (const page of runtime.handOver(sandbox_id)) {
        if (sender) await this.#handOver(sender, page);
      }
      await runtime.remove(sandbox_id);
      const now_ms = clock.wallMs();
      await store.write((tx) =>
        store.end(tx, sandbox_id, 'cleaning', replica, { deleted_at_ms: now_ms, updated_at_ms: now_ms }),
      );
      metrics.cleanup_seconds.observe((now_ms - row.updated_at_ms) / 1000);
    } catch (error) {
      log.warn({ sandbox_id, reason: (error as Error).message }, 'a cleanup failed and is tried again');
    }
  }

  async #handOver(sender: NonNullable<ReturnType<typeof senderOf>>, page: HandOverPage): Promise<void> {
    const { store, notices, log } = this.#works;
    const { sandbox_id } = sender;
    const { lost_records, trouble } = page;
    if (lost_records > 0 || trouble !== null) {
      log.error({ sandbox_id, lost_records, reason: trouble }, 'not every undelivered record could be read');
    }
    if (page.records.length === 0) return;
    await store.write((tx) => notices.handOver(tx, sender, page));
    notices.wake();
  }
}
