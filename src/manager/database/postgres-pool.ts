import type { PostgresPool, PostgresPoolClient } from 'kysely';
import pg from 'pg';

/** PostgreSQL's type of whole numbers with eight bytes. */
const INT8 = 20;
/** A standby, or a primary that has become one, takes no writes. */
const READ_ONLY = '25006';
const TOO_MANY_CONNECTIONS = '53300';

const types = {
  // Times and counts: all of them are exact as numbers.
  getTypeParser: ((oid: number, format?: 'text') =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

/**
 * Connections to PostgreSQL. One is lent again only where the server has said that it is idle outside of a
 * transaction: what a caller left behind is nobody else's. Where a server takes no writes every connection to it is
 * given up, because after a failover the name leads to another.
 */
export class ConnectionPool implements PostgresPool {
  readonly #pool: pg.Pool;
  readonly #generations = new WeakMap<pg.PoolClient, number>();
  #generation = 0;

  constructor(config: pg.PoolConfig) {
    this.#pool = new pg.Pool({ ...config, types });
    // An idle connection that ends is replaced when it is next needed.
    this.#pool.on('error', () => {});
    this.#pool.on('connect', (client) => {
      this.#generations.set(client, this.#generation);
      // While it is lent the pool does not listen. What is under way rejects by itself.
      client.on('error', () => {});
    });
  }

  async connect(): Promise<PostgresPoolClient> {
    for (;;) {
      const client = await this.#pool.connect();
      if (this.#generations.get(client) === this.#generation) return this.#lend(client);
      client.release(true);
    }
  }

  /** Whether the server answers at all; to say that it has no connection left is an answer. */
  async probe(): Promise<void> {
    try {
      await this.#pool.query('SELECT 1');
    } catch (error) {
      if ((error as { code?: string }).code !== TOO_MANY_CONNECTIONS) throw error;
    }
  }

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

/** Whether the server waits for a statement, and is in no transaction. */
function isIdle(client: pg.PoolClient): boolean {
  const { readyForQuery } = client as unknown as { readyForQuery: boolean };
  return readyForQuery && client.getTransactionStatus() === 'I';
}
