import { chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execaSync } from 'execa';
import pg from 'pg';
import { freePort } from './free-port.ts';
import { IS_UID_0 } from './rights.ts';
import { runSync } from './run-sync.ts';
import { RunningProgram } from './running-program.ts';

/** A database after hundreds of rounds. */
const DUMP_BYTES_MAX = 256 * 1024 * 1024;

/** PostgreSQL refuses to run as root: then it runs as the user that its package brings. */
const USER = 'postgres';
const PASSWORD = 'postgres';
const PACKAGED = '/usr/lib/postgresql';

/** Where PostgreSQL's programs are, or null where it is not installed or the quick tests leave it out. */
export function postgresPrograms(): string | null {
  if (process.env.SANDBOXD_TEST_QUICK) return null;
  try {
    const versions = readdirSync(PACKAGED).sort((a, b) => Number(b) - Number(a));
    return versions[0] === undefined ? null : join(PACKAGED, versions[0], 'bin');
  } catch {
    return null;
  }
}

/** How those who connect are known: by a password, or not at all. */
type Authentication = 'scram-sha-256' | 'trust';

/** Makes a cluster in a temporary folder and starts it; `settings` are added to its command line. */
export async function startPostgres(
  settings: Record<string, string> = {},
  authentication: Authentication = 'scram-sha-256',
): Promise<PostgresServer> {
  const server = await PostgresServer.make(settings, authentication);
  await server.begin();
  return server;
}

/** A real PostgreSQL of the present test's own, on loopback. */
export class PostgresServer {
  readonly #programs: string;
  readonly #folder: string;
  readonly #port: number;
  readonly #settings: Record<string, string>;
  #program: RunningProgram | null = null;
  #databases = 0;

  private constructor(programs: string, folder: string, port: number, settings: Record<string, string>) {
    this.#programs = programs;
    this.#folder = folder;
    this.#port = port;
    this.#settings = settings;
  }

  static async make(
    settings: Record<string, string>,
    authentication: Authentication,
  ): Promise<PostgresServer> {
    const programs = postgresPrograms();
    if (!programs) throw new Error('PostgreSQL is not installed');
    const folder = mkdtempSync(join(tmpdir(), 'sandbox-postgres-'));
    const owner = ownerOf();
    if (owner) chownSync(folder, owner.uid, owner.gid);
    const password_file = join(folder, 'password');
    writeFileSync(password_file, PASSWORD);
    const how = [
      ...['-A', authentication, '--pwfile', password_file],
      ...['-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
    ];
    execaSync(join(programs, 'initdb'), ['-D', join(folder, 'data'), '-U', USER, ...how], {
      cwd: folder,
      ...owner,
    });
    return new PostgresServer(programs, folder, await freePort(), settings);
  }

  /** The process, to be stopped, continued or killed by a test. */
  get pid(): number {
    return this.#program?.pid ?? 0;
  }

  /** The URL of a new, empty database. */
  async database(): Promise<string> {
    const name = `test_${++this.#databases}`;
    await this.#ask(`CREATE DATABASE ${name}`);
    return this.#url(name);
  }

  /** Copies a database of another server, by dump and restore; gives the copy's URL. */
  async restored(url: string): Promise<string> {
    const copy = await this.database();
    const { stdout: dump } = execaSync(join(this.#programs, 'pg_dump'), ['--no-owner', url], {
      encoding: 'buffer',
      stripFinalNewline: false,
      maxBuffer: DUMP_BYTES_MAX,
    });
    execaSync(join(this.#programs, 'psql'), ['--quiet', '--set', 'ON_ERROR_STOP=1', copy], {
      input: dump,
      stdout: 'ignore',
    });
    return copy;
  }

  /** Ends every connection to a database, as an operator does. */
  async dropConnections(url: string): Promise<void> {
    const name = new URL(url).pathname.slice(1);
    await this.#ask(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
  }

  /** Starts it, on the same files and port after an `end`. */
  async begin(): Promise<void> {
    const options = {
      listen_addresses: '127.0.0.1',
      port: String(this.#port),
      unix_socket_directories: this.#folder,
      max_connections: '200',
      ...this.#settings,
    };
    const given = Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const command = [join(this.#programs, 'postgres'), '-D', join(this.#folder, 'data'), ...given];
    this.#program = new RunningProgram(command, { stdout: 'ignore', cwd: this.#folder, ...ownerOf() });
    await this.#answers(this.#program);
  }

  /** Ends it at once; its files stay. */
  async end(): Promise<void> {
    this.#program?.kill('SIGCONT');
    await this.#program?.stop('SIGQUIT');
  }

  async stop(): Promise<void> {
    await this.end();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #url(name: string): string {
    return `postgres://${USER}:${PASSWORD}@127.0.0.1:${this.#port}/${name}`;
  }

  async #ask(sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url('postgres') });
    // The server may end with its connections open.
    client.on('error', () => {});
    await client.connect();
    await client.query(sql);
    await client.end();
  }

  async #answers(program: RunningProgram): Promise<void> {
    for (;;) {
      try {
        return await this.#ask('SELECT 1');
      } catch (error) {
        if (!program.is_running) throw new Error(`PostgreSQL ended: ${program.stderr}`, { cause: error });
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }
}

function ownerOf(): { uid: number; gid: number } | undefined {
  if (!IS_UID_0) return undefined;
  const id = (flag: string) => Number(runSync('id', flag, USER));
  return { uid: id('-u'), gid: id('-g') };
}
