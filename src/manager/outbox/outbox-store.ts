import { type Kysely, sql } from 'kysely';
import {
  DELIVERY_WINDOW_MS,
  RETAIN_FINAL_MS,
  TEAM_UNDELIVERED_BYTES,
  TEAM_UNDELIVERED_RECORDS,
} from '../../contract/defaults.ts';
import type { EventType } from '../../contract/events.ts';
import type { UndeliveredState } from '../../contract/words.ts';
import type { UndeliveredRecord } from '../../outbox/sqlite/undelivered/undelivered-record.ts';
import { deletedRequest } from '../../webhook/deleted-request.ts';
import { asksForStandardWebhooks } from '../../webhook/signature.ts';
import { newEventIds } from '../../webhook/signed-event.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { Seal } from '../database/seal.ts';
import type { Tables } from '../database/tables.ts';
import type { DeletedEvent, DeletionNotice, TakenOver, WebhookTarget } from '../sandboxes/ports.ts';
import { endpointOf } from './endpoint-key.ts';

/** The context under which the secret of a record is sealed. */
export function secretContext(event_id: string): string {
  return `outbox:${event_id}`;
}

/** Records that are discarded in one commit. */
const DISCARDED_AT_ONCE = 500;

/** Adds records to the manager's outbox and removes them. Errors of all methods: `unavailable`. Source: contract section 7. */
export class OutboxStore {
  readonly #database: Database;
  readonly #clock: DatabaseClock;
  readonly #seal: Seal;
  /** Teams whose records may be too many: some were added, or nothing is left to remove. */
  readonly #grown = new Set<string>();
  #dropped = 0;

  constructor(database: Database, clock: DatabaseClock, seal: Seal) {
    this.#database = database;
    this.#clock = clock;
    this.#seal = seal;
  }

  /** How many failed and expired records were removed before their time, to make room. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Whether a team is below its limits of pending records and bytes. Reads at most that many rows, and no bodies. */
  async hasRoom(tx: Transaction, team_id: string): Promise<boolean> {
    const { records, bytes } = await pendingOf(tx, team_id);
    return records < TEAM_UNDELIVERED_RECORDS && bytes < TEAM_UNDELIVERED_BYTES;
  }

  /** Adds the signed request of a `sandbox.deleted`, and returns its event; its window begins now. */
  async insertDeleted(tx: Transaction, notice: DeletionNotice): Promise<DeletedEvent> {
    const { sandbox_id, team_id, webhook_url, webhook_secret, reason, actor, happened_at_ms } = notice;
    const [event_id] = newEventIds(1, happened_at_ms) as [string];
    const deletion = { event_id, sandbox_id, team_id, reason, actor, happened_at_ms };
    const { headers, body, signatures } = deletedRequest(deletion, webhook_secret);
    this.#grown.add(team_id);
    await tx
      .insertInto('outbox')
      .values({
        ...placeOf(notice),
        event_id,
        event_type: 'sandbox.deleted',
        sequence: null,
        url: webhook_url,
        headers: JSON.stringify(headers),
        signatures: signatures && JSON.stringify(signatures),
        secret_sealed: null,
        body,
        // The specification names its classes.
        retry: 'transient',
        due_ms: 0,
        probe_ms: 0,
        deadline_ms: this.#clock.wallMs() + DELIVERY_WINDOW_MS,
        attempts: 0,
        failures: 0,
        created_at_ms: happened_at_ms,
      })
      .execute();
    return { event_id, body };
  }

  /** Takes over records unchanged, in order; returns those that were new. Records already present are left as they are. */
  async takeOver(tx: Transaction, sender: WebhookTarget, records: UndeliveredRecord[]): Promise<TakenOver[]> {
    const taken: TakenOver[] = [];
    this.#grown.add(sender.team_id);
    for (const record of records) {
      const inserted = await tx
        .insertInto('outbox')
        .values({ ...placeOf(sender), ...this.#undeliveredRecord(sender, record) })
        .onConflict((conflict) => conflict.column('event_id').doNothing())
        .returning('id')
        .executeTakeFirst();
      if (inserted) taken.push({ record_id: inserted.id, attempt_log: record.attempt_log });
    }
    return taken;
  }

  /** Stores the earlier attempts of records that were taken over. */
  async takeOverAttempts(tx: Transaction, taken: readonly TakenOver[]): Promise<void> {
    for (const { record_id, attempt_log } of taken) {
      if (attempt_log.length === 0) continue;
      const attempts = attempt_log.map((attempt) => ({ record_id, ...attempt }));
      await tx.insertInto('outbox_attempts').values(attempts).execute();
    }
  }

  #undeliveredRecord({ webhook_url, webhook_secret, retry }: WebhookTarget, record: UndeliveredRecord) {
    const now_ms = this.#clock.wallMs();
    const { event_id, attempts } = record;
    const is_tried = attempts > 0;
    return {
      event_id,
      event_type: record.event_type as EventType,
      sequence: record.sequence,
      url: webhook_url,
      headers: JSON.stringify(record.headers),
      signatures: null,
      secret_sealed: asksForStandardWebhooks(webhook_secret)
        ? this.#seal.seal(webhook_secret, secretContext(event_id))
        : null,
      body: record.body,
      retry,
      due_ms: is_tried ? now_ms + record.due_in_ms : 0,
      probe_ms: is_tried ? now_ms + record.probe_in_ms : 0,
      deadline_ms: now_ms + record.deadline_in_ms,
      attempts,
      failures: record.failures,
      created_at_ms: record.created_at_ms,
    };
  }

  /**
   * Removes final records past their retention, and those that a team has too many of; up to `limit` of each, and endpoints
   * without records. Returns the number of records.
   */
  async prune(limit: number): Promise<number> {
    let removed = await this.#removeOld(limit);
    for (const team_id of [...this.#grown]) {
      if (removed >= limit) break;
      removed += await this.#makeRoom(team_id, limit);
    }
    return removed;
  }

  /** Removes a record of a team that is not sent any more; false where there is none, or it is pending. */
  async discard(team_id: string, event_id: string): Promise<boolean> {
    const records = await this.#finalOf(team_id).where('event_id', '=', event_id).execute();
    return (await this.#remove(records)).length > 0;
  }

  /** Removes every record of a team in a state; returns their number. */
  async discardAll(team_id: string, state: UndeliveredState): Promise<number> {
    const until_ms = this.#clock.wallMs();
    let discarded = 0;
    for (let after = 0; ; ) {
      const some = await this.#finalOf(team_id)
        .where('state', '=', state)
        .where('finished_at_ms', '<=', until_ms)
        .where('id', '>', after)
        .orderBy('id')
        .limit(DISCARDED_AT_ONCE)
        .execute();
      if (some.length === 0) return discarded;
      // What another replica is just removing stays out: it must not be waited for.
      after = some.at(-1)?.id ?? after;
      discarded += (await this.#remove(some)).length;
    }
  }

  #finalOf(team_id: string) {
    return this.#database.db
      .selectFrom('outbox')
      .select('id')
      .where('team_id', '=', team_id)
      .where('due_ms', 'is', null);
  }

  async #removeOld(limit: number): Promise<number> {
    const old = await this.#database.db
      .selectFrom('outbox')
      .select('id')
      .where('due_ms', 'is', null)
      .where('finished_at_ms', '<=', this.#clock.wallMs() - RETAIN_FINAL_MS)
      .limit(limit)
      .execute();
    return (await this.#remove(old)).length;
  }

  /** Removes what a team has above its bounds of what is no longer sent: delivered records first, then the oldest. */
  async #makeRoom(team_id: string, limit: number): Promise<number> {
    const { db } = this.#database;
    const pending = await pendingOf(db, team_id);
    const order = sql`order by case state when 'delivered' then 1 else 0 end, id desc`;
    const kept = this.#finalOf(team_id)
      .select([sql<number>`row_number() over (${order})`.as('records')])
      .select(sql<number>`sum(${SIZE_BYTES}) over (${order})`.as('bytes'));
    const surplus = await db
      .selectFrom(kept.as('kept'))
      .select('id')
      .where(({ eb, or }) =>
        or([
          eb('records', '>', TEAM_UNDELIVERED_RECORDS - pending.records),
          eb('bytes', '>', TEAM_UNDELIVERED_BYTES - pending.bytes),
        ]),
      )
      .limit(limit)
      .execute();
    const gone = await this.#remove(surplus);
    // Once pending records alone are too many, each that becomes final is one too many as well.
    if (surplus.length < limit && pending.records < TEAM_UNDELIVERED_RECORDS) this.#grown.delete(team_id);
    this.#dropped += gone.filter(({ state }) => state !== 'delivered').length;
    return gone.length;
  }

  /** Removes final records and returns them, but those that were replayed, or that another replica removes, meanwhile. */
  async #remove(records: { id: number }[]): Promise<{ id: number; state: string }[]> {
    if (records.length === 0) return [];
    const { db, dialect } = this.#database;
    const idsOf = (some: { id: number }[]) => some.map(({ id }) => id);
    return db.transaction().execute(async (tx) => {
      const final = tx
        .selectFrom('outbox')
        .select('id')
        .where('id', 'in', idsOf(records))
        .where('due_ms', 'is', null);
      const gone = await tx
        .deleteFrom('outbox')
        .where('id', 'in', dialect === 'postgres' ? final.forUpdate().skipLocked() : final)
        .returning(['id', 'state'])
        .execute();
      if (gone.length > 0) {
        await tx.deleteFrom('outbox_attempts').where('record_id', 'in', idsOf(gone)).execute();
      }
      await tx
        .deleteFrom('outbox_endpoints')
        .where('owner', 'is', null)
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('outbox')
                .select('outbox.id')
                .whereRef('outbox.endpoint', '=', 'outbox_endpoints.endpoint')
                .where('outbox.due_ms', 'is not', null),
            ),
          ),
        )
        .execute();
      return gone;
    });
  }
}

/** What a record counts against its team's bound, in bytes. */
const SIZE_BYTES = sql<number>`(octet_length(body) + coalesce(octet_length(signatures), 0))`;

/** A team's pending records and their bytes: at most as many as its bound are counted. */
function pendingOf(db: Kysely<Tables>, team_id: string): Promise<{ records: number; bytes: number }> {
  return db
    .selectFrom((from) =>
      from
        .selectFrom('outbox')
        .select(SIZE_BYTES.as('bytes'))
        .where('team_id', '=', team_id)
        .where('state', '=', 'pending')
        .limit(TEAM_UNDELIVERED_RECORDS)
        .as('undelivered'),
    )
    .select(({ fn }) => [
      fn.countAll<number>().as('records'),
      sql<number>`cast(coalesce(sum(bytes), 0) as bigint)`.as('bytes'),
    ])
    .executeTakeFirstOrThrow();
}

function placeOf({ sandbox_id, team_id, webhook_url }: WebhookTarget) {
  const state = 'pending' as const;
  return { sandbox_id, team_id, endpoint: endpointOf(webhook_url), state, finished_at_ms: null };
}
