import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type Consumer, openConsumer } from '../consumer.ts';
import { runManagerCommand } from '../manager-program.ts';
import type { PostgresServer } from '../postgres.ts';
import type { RedisServer } from '../redis.ts';
import { Replica } from './replica.ts';

export const TEAM = 'team_1';
export const SECRET = 'a key made for this test';
/** Sandboxes of the team that run at the same time. */
export const ACTIVE_MAX = 4;
/** What each sandbox takes. */
export const RESOURCES = { memory: '128Mi', cpu: 1, disk: '128Mi' };

/** `local-unsafe` has no walls, disks and networks, which makes a sandbox in half the time. */
export type LaneRuntime = 'local' | 'local-unsafe';

/** What lanes share. */
export interface Servers {
  postgres: PostgresServer;
  redis: RedisServer;
  /** The manager's program. */
  program: string;
}

const SCOPES = ['sandboxes:write', 'quota:read', 'usage:read', 'webhooks:read'];

/** Two replicas on one database and one data directory, in which rounds are played one after another. */
export class Lane {
  readonly data_dir: string;
  readonly folder: string;
  readonly consumer: Consumer;
  readonly replicas: Replica[] = [];
  readonly runtime: LaneRuntime;
  readonly #servers: Servers;
  readonly #closeConsumer: () => void;
  database: string;
  #pool: pg.Pool | null = null;

  private constructor(
    servers: Servers,
    runtime: LaneRuntime,
    database: string,
    { consumer, close }: Awaited<ReturnType<typeof openConsumer>>,
  ) {
    this.#servers = servers;
    this.runtime = runtime;
    this.database = database;
    this.consumer = consumer;
    this.#closeConsumer = close;
    this.folder = mkdtempSync(join(tmpdir(), 'sandboxd-lane-'));
    this.data_dir = join(this.folder, 'data');
  }

  static async open(servers: Servers, runtime: LaneRuntime): Promise<Lane> {
    const database = await servers.postgres.database();
    const lane = new Lane(servers, runtime, database, await openConsumer());
    mkdirSync(lane.data_dir, { mode: 0o700 });
    lane.#writeConfig();
    const scopes = SCOPES.flatMap((scope) => ['--scope', scope]);
    const token = await runManagerCommand(
      'token',
      'create',
      '--team',
      TEAM,
      ...scopes,
      '--database',
      database,
    );
    for (const name of ['a', 'b']) {
      const launch = { name, folder: lane.folder, program: servers.program, options: lane.options, token };
      lane.replicas.push(await Replica.open(launch, database));
    }
    await Promise.all(lane.replicas.map((replica) => replica.start(database)));
    return lane;
  }

  get #config(): string {
    return join(this.folder, 'config.yaml');
  }

  get program(): string {
    return this.#servers.program;
  }

  /** What every replica is started with, beside its own way to the database. */
  get options(): string[] {
    return ['--config', this.#config, '--listen', '127.0.0.1:0'];
  }

  #writeConfig(): void {
    const lines = [
      ...[`database: ${this.database}`, `redis: ${this.#servers.redis.url}`, 'replicas: 2'],
      ...[`runtime: ${this.runtime}`, `data_dir: ${this.data_dir}`, 'console: off'],
      ...(this.runtime === 'local' ? ['network: none'] : []),
      ...[`secret_key_file: ${join(this.folder, 'key')}`, 'allow_webhook_cidr: [127.0.0.0/8]'],
      ...['node_memory: 64Gi', 'node_cpus: 64', 'node_sandboxes: 64'],
      ...['default_team_quotas:', '  - dimension: active_sandboxes', `    limit_value: ${ACTIVE_MAX}`],
    ];
    writeFileSync(this.#config, `${lines.join('\n')}\n`);
  }

  /** Runs a command of the manager's program as an operator does; gives what it prints. */
  async command(...words: string[]): Promise<string> {
    return runManagerCommand(...words, '--config', this.#config);
  }

  /** Rows of the present database. */
  async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
    this.#pool ??= new pg.Pool({ connectionString: this.database, max: 1 }).on('error', () => {});
    const pool = this.#pool;
    // The connection may have been dropped since.
    const asked = await pool.query(text, values).catch(() => pool.query(text, values));
    return asked.rows as Row[];
  }

  /** Cuts every connection to the database, as its operator can. */
  async dropConnections(): Promise<void> {
    await this.#servers.postgres.dropConnections(this.database);
  }

  /** A copy of the database as it is now, by dump. */
  async backUp(): Promise<string> {
    return this.#servers.postgres.restored(this.database);
  }

  /** Ends all replicas and starts them on the copy. */
  async restore(copy: string): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.kill()));
    await this.#leaveDatabase();
    this.database = copy;
    this.#writeConfig();
    await Promise.all(this.replicas.map((replica) => replica.start(copy)));
  }

  async #leaveDatabase(): Promise<void> {
    await this.#pool?.end();
    this.#pool = null;
  }

  async close(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.stop()));
    await this.#leaveDatabase();
    this.#closeConsumer();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
