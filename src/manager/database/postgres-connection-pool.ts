import type { PostgresPool, PostgresPoolClient } from 'kysely';
import pg from 'pg';

/** The type id of PostgreSQL's 8-byte integers. */
const INT8 = 20;
/** SQLSTATE of a write to a standby, or to a primary that has become one. */
const READ_ONLY = '25006';
const TOO_MANY_CONNECTIONS = '53300';

const types = {
  // Times and counts all fit exactly into a number.
  getTypeParser: ((oid: number, format?: 'text') =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

/**
 * Connections to PostgreSQL. A connection is reused only if the server has reported it idle outside of a transaction,
 * so that no caller inherits another's state. When a server turns out to be read-only, all connections to it are
 * dropped, because after a failover its name leads to another server.
 */
export class PostgresConnectionPool implements PostgresPool {
  readonly #pool: pg.Pool;
  readonly #generations = new WeakMap<pg.PoolClient, number>();
  #generation = 0;

  /** `onConnect` is told of each new connection. */
  constructor(config: pg.PoolConfig, onConnect: () => void = () => {}) {
    this.#pool = new pg.Pool({ ...config, types });
    // An idle connection that ends is replaced at the next use.
    this.#pool.on('error', () => {});
    this.#pool.on('connect', (client) => {
      this.#generations.set(client, this.#generation);
      // The pool does not listen while the connection is in use. Pending queries reject by themselves.
      client.on('error', () => {});
      onConnect();
    });
  }

  /** A connection of the current generation; `release` on it returns it to the pool. Rejects with the driver's error. */
  async connect(): Promise<PostgresPoolClient> {
    for (;;) {
      const client = await this.#pool.connect();
      if (this.#generations.get(client) === this.#generation) return this.#lend(client);
      client.release(true);
    }
  }

  /** Rejects if the server does not answer; "too many connections" counts as an answer. */
  async probe(): Promise<void> {
    try {
      await this.#pool.query('SELECT 1');
    } catch (error) {
      if ((error as { code?: string }).code !== TOO_MANY_CONNECTIONS) throw error;
    }
  }

  /** Closes every connection. */
  end(): Promise<void> {
    return this.#pool.end();
  }

  #lend(client: pg.PoolClient): PostgresPoolClient {
    const query = async (sql: string, parameters: readonly unknown[]) => {
      try {
        return await client.query(sql, parameters as unknown[]);
      } catch (error) {
        if ((error as { code?: string }).code === READ_ONLY) this.#generation += 1;
        throw error;
      }
    };
    const release = () => client.release(!isIdle(client));
    return { query, release } as unknown as PostgresPoolClient;
  }
}

/** Whether the server is ready for a statement outside of a transaction. */
function isIdle(client: pg.PoolClient): boolean {
  const { readyForQuery } = client as unknown as { readyForQuery: boolean };
  return readyForQuery && client.getTransactionStatus() === 'I';
}
