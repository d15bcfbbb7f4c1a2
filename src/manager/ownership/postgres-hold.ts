import pg from 'pg';
import { type Clock, runTime, sleep } from '../../base/clock.ts';
import { kernelRandom } from '../../base/entropy.ts';
import type { Log } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import { connectionOptions } from '../database/database.ts';
import { reasonOf, translateError } from '../database/database-errors.ts';
import type { DatabaseHold, HoldParts } from './database-hold.ts';

/** The first half of the lock's key; the second is of the schema, which has the tables. */
const HOLD = 0x73_62_78_68; // "sbxh"
const BEAT_MS = 5_000;
const RETRY_MS = 250;
/** The server finds out within half a minute that the machine of a session is gone. */
const SETTINGS =
  'set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3';
const KEY = `${HOLD}, hashtext(coalesce(current_schema(), ''))`;
const HOLDERS = `select pid, application_name, host(client_addr) as host
  from pg_locks join pg_stat_activity using (pid)
  where locktype = 'advisory' and classid = ${HOLD} and objid::bigint = (hashtext(coalesce(current_schema(), ''))::bigint & 4294967295)
    and pg_locks.database = (select oid from pg_database where datname = current_database()) and granted`;

/**
 * A PostgreSQL database, held by a lock of a session of its own: exclusive with `--replicas 1`, shared otherwise. A lost
 * session is made again; where another manager has the lock by then, this one is displaced.
 */
export class PostgresHold implements DatabaseHold {
  readonly displaced: Promise<string>;
  readonly #displace: (reason: string) => void;
  readonly #url: string;
  readonly #is_alone: boolean;
  readonly #clock: Clock;
  readonly #log: Log;
  /** By which a session that the server has not given up yet is known as this manager's. */
  readonly #name = `sandbox-manager ${process.pid} ${kernelRandom(8).toString('hex')}`;
  readonly #released = new AbortController();
  #client: pg.Client | null = null;
  #lost = new AbortController();

  /** Takes the lock; gives who holds it where that is somebody else. Throws StartError with the database's error. */
  static async take(parts: HoldParts): Promise<PostgresHold | string> {
    const hold = new PostgresHold(parts);
    try {
      const holder = await hold.#take();
      if (holder !== null) return holder;
    } catch (error) {
      const cause = translateError(error);
      throw new StartError(`--database cannot be used: ${reasonOf(cause)}`, 1, cause);
    }
    void hold.#keep();
    return hold;
  }

  private constructor({ url, is_alone, clock, log }: HoldParts) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.displaced = promise;
    this.#displace = resolve;
    this.#url = url;
    this.#is_alone = is_alone;
    this.#clock = runTime(clock);
    this.#log = log;
  }

  /** See `DatabaseHold`. */
  async release(): Promise<void> {
    this.#released.abort();
    await this.#end();
  }

  /** Null, or who holds it. */
  async #take(): Promise<string | null> {
    const client = new pg.Client({ ...connectionOptions(this.#url), application_name: this.#name });
    const lost = new AbortController();
    client.on('error', () => lost.abort());
    client.on('end', () => lost.abort());
    this.#client = client;
    this.#lost = lost;
    try {
      await client.connect();
      await client.query(SETTINGS);
      const lock = this.#is_alone ? 'pg_try_advisory_lock' : 'pg_try_advisory_lock_shared';
      for (;;) {
        const { rows } = await client.query(`select ${lock}(${KEY}) as is_taken`);
        if (rows[0].is_taken) return null;
        const { rows: holders } = await client.query(HOLDERS);
        const own = holders.find(({ application_name }) => application_name === this.#name);
        if (own === undefined) {
          await this.#end();
          const [other] = holders;
          return other === undefined
            ? ''
            : ` (${other.application_name}${other.host === null ? '' : ` at ${other.host}`})`;
        }
        await client.query('select pg_terminate_backend($1)', [own.pid]);
        await sleep(this.#clock, RETRY_MS);
      }
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  /** Looks whether the session is there, and makes it again. */
  async #keep(): Promise<void> {
    const { signal } = this.#released;
    for (;;) {
      await sleep(this.#clock, BEAT_MS, AbortSignal.any([signal, this.#lost.signal]));
      if (signal.aborted) return;
      try {
        await this.#client?.query('select 1');
        if (this.#client !== null) continue;
      } catch (error) {
        this.#log.warn(
          { reason: reasonOf(translateError(error)) },
          'the session that holds the database is lost',
        );
      }
      await this.#end();
      const holder = await this.#takeAgain();
      if (holder !== null) return this.#displace(`another sandbox-manager holds the database${holder}`);
    }
  }

  async #takeAgain(): Promise<string | null> {
    const { signal } = this.#released;
    while (!signal.aborted) {
      try {
        return await this.#take();
      } catch {
        await sleep(this.#clock, RETRY_MS, signal);
      }
    }
    return null;
  }

  async #end(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => {});
  }
}
