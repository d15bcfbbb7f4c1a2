import { sql } from 'kysely';
import {
  BACKOFF_CAP_MS,
  CLOCK_OFF_MS,
  DELIVERY_WINDOW_MS,
  OUTBOX_LEASE_MS,
  RETRY_AFTER_CAP_MS,
} from '../../contract/defaults.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import { hasReplicaEnded } from '../database/replica.ts';

/** Number of endpoints in one statement. */
const CLAIMED_AT_ONCE = 500;

/** An endpoint that has pending records. */
export interface PendingEndpoint {
  endpoint: string;
  /** The replica that delivers to it, or null. */
  owner: string | null;
  /** The id of the newest record that was never tried, or null. */
  newest_untried_id: number | null;
  /** When the first retry is due (wall time in ms), or null. */
  first_due_ms: number | null;
}

/** An endpoint that this replica owns. Writes under an older fence are refused. */
export interface OwnedEndpoint {
  endpoint: string;
  fence: number;
  /** The URL of one of its pending records, for log lines, because the endpoint is a hash. Null if none is pending. */
  url?: string | null;
}

/**
 * Which replica delivers to which endpoint. A replica has one lease for all its endpoints. Once the lease has expired
 * another replica may remove it, and only then do its endpoints get another owner and a higher fence. Errors of all
 * methods: `unavailable`. Source: contract section 7.
 */
export class EndpointStore {
  readonly #database: Database;
  readonly #clock: DatabaseClock;
  /** This replica's name. */
  readonly owner: string;

  constructor(database: Database, clock: DatabaseClock, owner: string) {
    this.#database = database;
    this.#clock = clock;
    this.owner = owner;
  }

  /** Every endpoint with pending records, regardless of its owner. Reads one index row per endpoint. */
  async pending(): Promise<PendingEndpoint[]> {
    const { rows } = await sql<PendingEndpoint>`
      with recursive pending (endpoint) as (
        select min(endpoint) from outbox where due_ms is not null
        union all
        select (select min(o.endpoint) from outbox o where o.due_ms is not null and o.endpoint > pending.endpoint)
        from pending where pending.endpoint is not null
      )
      select pending.endpoint, e.owner,
        (select max(o.id) from outbox o where o.endpoint = pending.endpoint and o.due_ms = 0) as newest_untried_id,
        (select min(o.due_ms) from outbox o where o.endpoint = pending.endpoint and o.due_ms > 0) as first_due_ms
      from pending left join outbox_endpoints e on e.endpoint = pending.endpoint
      where pending.endpoint is not null`.execute(this.#database.db);
    return rows;
  }

  /** Extends the lease; false if another replica removed it, which means that no endpoint is owned any more. */
  async renew(): Promise<boolean> {
    const { numUpdatedRows } = await this.#database.db
      .updateTable('outbox_replicas')
      .set({ lease_until_ms: this.#leaseEnd() })
      .where('owner', '=', this.owner)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** Begins the lease. */
  async register(): Promise<void> {
    await this.#database.db
      .insertInto('outbox_replicas')
      .values({ owner: this.owner, lease_until_ms: this.#leaseEnd() })
      .onConflict((conflict) => conflict.column('owner').doNothing())
      .execute();
  }

  #leaseEnd() {
    return this.#clock.moment().in(OUTBOX_LEASE_MS);
  }

  /** Removes expired leases of others, and those of replicas that have certainly ended; frees their endpoints. Returns their number. */
  async removeEnded(): Promise<number> {
    const { now } = this.#clock.moment();
    const others = await this.#database.db
      .selectFrom('outbox_replicas')
      .select(['owner', sql<number>`lease_until_ms - ${now}`.as('left_ms')])
      .where('owner', '!=', this.owner)
      .execute();
    const ended = others.filter(({ owner }) => hasReplicaEnded(owner)).map(({ owner }) => owner);
    const over = others.filter(({ left_ms }) => left_ms < 0).map(({ owner }) => owner);
    await this.#limitLeases(others.filter(({ left_ms }) => left_ms > OUTBOX_LEASE_MS + CLOCK_OFF_MS));
    if (ended.length + over.length === 0) return 0;
    return this.#database.db.transaction().execute(async (tx) => {
      const removed = await tx
        .deleteFrom('outbox_replicas')
        .where('owner', 'in', [...ended, ...over])
        // Checked again, because the lease may have been renewed in the meantime.
        .where((where) =>
          where.or([
            sql<boolean>`lease_until_ms < ${this.#clock.moment().now}`,
            ...(ended.length > 0 ? [where('owner', 'in', ended)] : []),
          ]),
        )
        .returning('owner')
        .execute();
      const owners = removed.map(({ owner }) => owner);
      if (owners.length === 0) return 0;
      await tx.updateTable('outbox_endpoints').set({ owner: null }).where('owner', 'in', owners).execute();
      return owners.length;
    });
  }

  /** Cuts leases that end later than one that begins now: the database's clock went back. */
  async #limitLeases(replicas: { owner: string }[]): Promise<void> {
    if (replicas.length === 0) return;
    const owners = replicas.map(({ owner }) => owner);
    await this.#database.db
      .updateTable('outbox_replicas')
      .set({ lease_until_ms: this.#leaseEnd() })
      .where('owner', 'in', owners)
      .where('lease_until_ms', '>', this.#leaseEnd())
      .execute();
  }

  /** Claims the free ones among these endpoints, and returns all that are owned. Requires a lease. */
  async claim(endpoints: string[]): Promise<OwnedEndpoint[]> {
    const owned: OwnedEndpoint[] = [];
    for (let i = 0; i < endpoints.length; i += CLAIMED_AT_ONCE) {
      const some = endpoints.slice(i, i + CLAIMED_AT_ONCE).sort();
      owned.push(...(await this.#database.db.transaction().execute((tx) => this.#claim(tx, some))));
    }
    return owned;
  }

  async #claim(tx: Transaction, endpoints: string[]): Promise<OwnedEndpoint[]> {
    await tx
      .insertInto('outbox_endpoints')
      .values(endpoints.map((endpoint) => ({ endpoint, owner: null, fence: 0 })))
      .onConflict((conflict) => conflict.column('endpoint').doNothing())
      .execute();
    const free = tx
      .selectFrom('outbox_endpoints')
      .select('endpoint')
      .where('endpoint', 'in', endpoints)
      .where((where) => where.or([where('owner', 'is', null), where('owner', '=', this.owner)]));
    const rows = await (this.#database.dialect === 'postgres'
      ? free.forUpdate().skipLocked()
      : free
    ).execute();
    const claimed = rows.map(({ endpoint }) => endpoint);
    if (claimed.length === 0) return [];
    await this.#limitSchedule(tx, claimed);
    const now = this.#clock.moment().now;
    return (
      tx
        .updateTable('outbox_endpoints')
        // At least the current time, so that the fence increases even if the row was removed in between.
        .set({
          owner: this.owner,
          fence: sql<number>`case when fence >= ${now} then fence + 1 else ${now} end`,
        })
        .where('endpoint', 'in', claimed)
        .returning((returned) => [
          'endpoint',
          'fence',
          returned
            .selectFrom('outbox')
            .select('outbox.url')
            .whereRef('outbox.endpoint', '=', 'outbox_endpoints.endpoint')
            .where('outbox.due_ms', 'is not', null)
            .limit(1)
            .as('url'),
        ])
        .execute()
    );
  }

  /** Reschedules records that lie further in the future than possible, because a clock was ahead. */
  async #limitSchedule(tx: Transaction, endpoints: string[]): Promise<void> {
    const now_ms = this.#clock.wallMs();
    await tx
      .updateTable('outbox')
      .set({ due_ms: now_ms, probe_ms: now_ms })
      .where('endpoint', 'in', endpoints)
      .where('due_ms', '>', now_ms + RETRY_AFTER_CAP_MS + BACKOFF_CAP_MS)
      .execute();
    await tx
      .updateTable('outbox')
      .set({ deadline_ms: now_ms + DELIVERY_WINDOW_MS })
      .where('endpoint', 'in', endpoints)
      .where('due_ms', '>', 0)
      .where('deadline_ms', '>', now_ms + 2 * DELIVERY_WINDOW_MS)
      .execute();
  }

  /** Releases an endpoint if it is still owned under that fence. */
  async release({ endpoint, fence }: OwnedEndpoint): Promise<void> {
    await this.#database.db
      .updateTable('outbox_endpoints')
      .set({ owner: null })
      .where('endpoint', '=', endpoint)
      .where('fence', '=', fence)
      .execute();
  }

  /** Releases every endpoint and ends the lease. */
  async leave(): Promise<void> {
    await this.#database.db.transaction().execute(async (tx) => {
      await tx.updateTable('outbox_endpoints').set({ owner: null }).where('owner', '=', this.owner).execute();
      await tx.deleteFrom('outbox_replicas').where('owner', '=', this.owner).execute();
    });
  }
}
