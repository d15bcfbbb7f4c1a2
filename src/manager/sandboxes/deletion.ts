import { sleep } from '../../base/clock.ts';
import { type Backoff, backoffMs } from '../../contract/backoff.ts';
import { DELIVERY_WINDOW_MS } from '../../contract/defaults.ts';
import type { UndeliveredPage } from '../../runtime/runtime.ts';
import { deletedEvent } from '../../webhook/deleted-request.ts';
import type { Transaction } from '../database/database.ts';
import { reasonOf } from '../database/database-errors.ts';
import type { HeldOperation } from './held-operation.ts';
import { Limiter } from './limiter.ts';
import type { NewLease, Operations } from './operations.ts';
import type { DeletionNotice, TakenOver } from './ports.ts';
import { sentKindsOf, webhookTargetOf } from './sandbox-row.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';
import type { SandboxServices } from './services.ts';
import { noSandbox, transitionError } from './transitions.ts';

/** Concurrent cleanups, in all and of one team: a daemon may be slow to end. */
const CLEANUPS_MAX = 16;
const CLEANUPS_PER_TEAM = 8;
/** The wait before a failed cleanup is tried again: doubled each time, up to the cap. */
const RETRY: Backoff = { base_ms: 1_000, max_ms: 5 * 60 * 1000 };

type Reason = Exclude<DeletionNotice['reason'], 'runtime_lost'>;

/** What Deletions uses of the manager. */
type DeletionServices = Pick<
  SandboxServices,
  | 'clock'
  | 'log'
  | 'store'
  | 'runtime'
  | 'metering'
  | 'traffic'
  | 'deletion_outbox'
  | 'feed'
  | 'seal'
  | 'metrics'
  | 'sight'
>;

/**
 * Deletes sandboxes. One commit sets the status, queues the signed `sandbox.deleted` and frees the capacity. The cleanup
 * follows: it ends the sandbox, hands over undelivered records and removes the files, without waiting for a consumer.
 * Source: contract section 7, DELETE.
 */
export class Deletions {
  readonly #services: DeletionServices;
  readonly #operations: Operations;
  readonly #limiter = new Limiter(CLEANUPS_MAX, CLEANUPS_PER_TEAM);
  readonly #stopping = new AbortController();

  constructor(services: DeletionServices, operations: Operations) {
    this.#services = services;
    this.#operations = operations;
  }

  /** Commits a deletion and starts its cleanup. Idempotent. Throws `not_found`, `conflict`. */
  async delete(
    sandbox_id: string,
    team_id: string,
    { reason, actor }: { reason: Reason; actor: string | null },
  ): Promise<void> {
    const { store, clock, metrics, deletion_outbox } = this.#services;
    const found = await store.findKept(store.db, sandbox_id, team_id);
    if (found?.deleted_at_ms !== null) throw noSandbox(found?.deleted_at_ms);
    if (found.status === 'terminating') return;
    const is_lost = found.status === 'failed' || (await this.#isLost(sandbox_id));
    const lease = this.#operations.lease();
    const row = await this.#commit(is_lost ? 'runtime_lost' : reason, actor, async (tx) => {
      const where = { sandbox_id, team_id, at: clock.moment() };
      const begun = await store.beginTransition(tx, 'delete', where, lease);
      if (!('refused' in begun)) return begun;
      if (begun.status === 'terminating') return null;
      throw transitionError(begun);
    });
    if (!row) return;
    metrics.transitions.add(['delete', 'done']);
    deletion_outbox.wake();
    void this.clean(row, lease);
  }

  /** Without an answer of the runtime the sandbox counts as running: a deletion must not depend on it. */
  async #isLost(sandbox_id: string): Promise<boolean> {
    const { runtime, log } = this.#services;
    try {
      return (await runtime.liveness(sandbox_id)) === 'lost';
    } catch (error) {
      log.warn({ sandbox_id, reason: reasonOf(error) }, 'cannot determine whether a sandbox is alive');
      return false;
    }
  }

  /**
   * Commits the deletion of what was claimed or copied and cannot be completed, once its daemon has run: that may have
   * acknowledged events. The cleanup is left as that of a manager that died. Throws `unavailable` if it is another replica's.
   */
  async undo(held: HeldOperation): Promise<void> {
    const { store, clock, deletion_outbox } = this.#services;
    await this.#commit('runtime_lost', null, async (tx) => {
      const row = await store.beginUndo(tx, held, clock.moment());
      if (!row) throw held.lose();
      return row;
    });
    deletion_outbox.wake();
  }

  /** `begin` begins the cleanup; null, where another caller was faster, commits nothing. */
  async #commit(
    reason: DeletionNotice['reason'],
    actor: string | null,
    begin: (tx: Transaction) => Promise<ManagedSandboxRow | null>,
  ): Promise<ManagedSandboxRow | null> {
    const { store, seal, deletion_outbox, feed, metering } = this.#services;
    return store.writeFreeing(async (tx) => {
      const row = await begin(tx);
      if (!row) return null;
      const { sandbox_id, team_id } = row;
      await metering.ended(tx, sandbox_id, reason === 'runtime_lost' ? 'last_seen' : row.updated_at_ms);
      const target = webhookTargetOf(row, seal);
      const deletion = { sandbox_id, team_id, reason, actor, happened_at_ms: row.updated_at_ms };
      const is_sent = sentKindsOf(row)?.includes('sandbox.deleted') ?? true;
      const event =
        target && is_sent
          ? await deletion_outbox.sandboxDeleted(tx, { ...target, ...deletion })
          : deletedEvent(deletion);
      await feed.deleted(tx, row, event);
      return row;
    });
  }

  /** Cleans up after a committed deletion, with retries until it is done or lost, or `stop` is called. Never rejects. */
  async clean(row: ManagedSandboxRow, lease: NewLease): Promise<void> {
    if (this.#operations.isUnderWay(row.sandbox_id)) return;
    await this.#operations.run(row, lease, async (held) => {
      for (let failures = 1; !this.#stopping.signal.aborted; failures++) {
        if (await this.#limiter.run(row.team_id, () => this.#clean(row, held))) return;
        if (held.is_lost) return;
        await sleep(this.#services.clock, backoffMs(failures, RETRY), this.#stopping.signal);
      }
    });
  }

  /** Starts no further cleanup; another replica takes over those that are left. */
  stop(): void {
    this.#stopping.abort();
  }

  /** True when the cleanup is complete. Every step may be repeated, here or by another replica. */
  async #clean(row: ManagedSandboxRow, held: HeldOperation): Promise<boolean> {
    const { runtime, store, traffic, clock, log, metrics, sight } = this.#services;
    const { sandbox_id } = row;
    if (this.#stopping.signal.aborted) return false;
    try {
      const { outcome } = await runtime.end(sandbox_id, held);
      if (outcome === 'absent' && (await this.#isElsewhere(sandbox_id))) return false;
      sight.seen(sandbox_id);
      const usage = await runtime.networks.cut(sandbox_id);
      await store.writeFreeing(async (tx) => {
        await traffic.closed(tx, sandbox_id, usage, clock.wallMs());
        if (runtime.runs_sandboxes) await store.noteEnd(tx, held);
      });
      await this.#handOver(row, held);
      await runtime.remove(sandbox_id, held);
      const { now } = clock.moment();
      const changes = { deleted_at_ms: now, updated_at_ms: now, ...withoutSecrets(row) };
      if (!(await store.writeFreeing((tx) => store.endDeletion(tx, held, changes)))) throw held.lose();
      metrics.cleanup_seconds.observe((clock.wallMs() - row.updated_at_ms) / 1000);
      return true;
    } catch (error) {
      log.warn({ sandbox_id, reason: reasonOf(error) }, 'a cleanup failed and will be retried');
      return false;
    }
  }

  /**
   * Whether nothing of a sandbox is here although no cleanup has found and ended it: then its files, with what it had not
   * delivered, may be elsewhere, and the cleanup waits for them, or until somebody gives them up.
   */
  async #isElsewhere(sandbox_id: string): Promise<boolean> {
    const { store, sight } = this.#services;
    const row = await store.find(store.db, sandbox_id, null);
    if (row?.operation !== 'cleaning') return false;
    sight.deleting(sandbox_id);
    return true;
  }

  /**
   * Moves what the daemon had not delivered into the outbox, and what is new of the sandbox's life into the feed; the
   * files are kept until that is complete.
   */
  async #handOver(row: ManagedSandboxRow, held: HeldOperation): Promise<void> {
    const { runtime, clock, log, seal, store, feed, deletion_outbox } = this.#services;
    const { sandbox_id, team_id } = row;
    const target = webhookTargetOf(row, seal);
    const keys = { webhook_secret: target?.webhook_secret ?? '', record_key: seal.recordKey(sandbox_id) };
    const trust = { team_id, ...keys, lifecycle_after: await feed.position(sandbox_id) };
    try {
      for await (const page of runtime.handOver(sandbox_id, trust, held)) {
        if (target) this.#report(sandbox_id, page);
        const { lifecycle: events = [] } = page;
        const records = target ? page.records : [];
        if (events.length + records.length === 0) continue;
        const taken = await store.writeFreeing(async (tx) => {
          await this.#operations.confirm(tx, held);
          if (events.length > 0) await feed.store(tx, row, { events, is_complete: true });
          return target && records.length > 0 ? deletion_outbox.handOver(tx, target, records) : [];
        });
        if (taken.length > 0) await this.#noteAttempts(sandbox_id, taken);
      }
    } catch (error) {
      if (held.is_lost) throw error;
      if (clock.wallMs() - row.updated_at_ms < DELIVERY_WINDOW_MS) throw error;
      // The delivery window of every record is over.
      log.error(
        { sandbox_id, reason: (error as Error).message },
        'undelivered records of a deleted sandbox could not be read',
      );
    }
  }

  #report(sandbox_id: string, { lost_records, trouble, set_aside }: UndeliveredPage): void {
    const { log, metrics } = this.#services;
    if (lost_records > 0 || trouble !== null) {
      log.error(
        { sandbox_id, lost_records, reason: trouble },
        'some undelivered records of a deleted sandbox could not be read',
      );
    }
    if (set_aside > 0) {
      metrics.records_set_aside.add([], set_aside);
      log.error(
        { sandbox_id, records: set_aside },
        "records that the sandbox's daemon did not write will not be sent",
      );
    }
  }

  /** In a transaction of their own: attempts only inform people, records must be delivered. */
  async #noteAttempts(sandbox_id: string, taken: TakenOver[]): Promise<void> {
    const { store, deletion_outbox, log } = this.#services;
    deletion_outbox.wake();
    await store
      .write((tx) => deletion_outbox.handOverAttempts(tx, taken))
      .catch((error: Error) => {
        log.warn(
          { sandbox_id, reason: error.message },
          'the attempts of handed-over records could not be stored',
        );
      });
  }
}

/** Clears the secrets, which nothing needs once the events are in the outbox. An empty text says that there was a secret. */
function withoutSecrets({ webhook_secret_sealed }: ManagedSandboxRow) {
  const webhook_secret = webhook_secret_sealed === null ? null : '';
  return { env_sealed: null, env_names_sealed: null, webhook_secret_sealed: webhook_secret };
}
