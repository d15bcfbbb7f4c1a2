import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

/** PostgreSQL refuses to run as root: then it runs as the user that its package brings. */
const USER = 'postgres';
const PACKAGED = '/usr/lib/postgresql';

/** A real PostgreSQL of the present test file's own, on loopback. */
export interface PostgresServer {
  /** The process, to be stopped, continued or killed by a test. */
  pid: number;
  /** The URL of a new, empty database. */
  database(): Promise<string>;
  stop(): Promise<void>;
}

/** Where PostgreSQL's programs are, or null where it is not installed. */
export function postgresPrograms(): string | null {
  try {
    const versions = readdirSync(PACKAGED).sort((a, b) => Number(b) - Number(a));
    return versions[0] === undefined ? null : join(PACKAGED, versions[0], 'bin');
  } catch {
    return null;
  }
}

/** Makes a cluster in a temporary folder and starts it; `settings` are added to its command line. */
export async function startPostgres(settings: Record<string, string> = {}): Promise<PostgresServer> {
  const programs = postgresPrograms();
  if (!programs) throw new Error('PostgreSQL is not installed');
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-postgres-'));
  const owner = ownerOf();
  if (owner) chownSync(folder, owner.uid, owner.gid);
  const data = join(folder, 'data');
  execFileSync(
    join(programs, 'initdb'),
    ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
    { stdio: 'pipe', cwd: folder, ...owner },
  );
  const port = await freePort();
  const options = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: folder,
    max_connections: '200',
    ...settings,
  };
  const server = spawn(
    join(programs, 'postgres'),
    ['-D', data, ...Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    { stdio: ['ignore', 'ignore', 'pipe'], cwd: folder, ...owner },
  );
  let log = '';
  server.stderr.on('data', (chunk: Buffer) => {
    log = `${log}${chunk}`.slice(-4_000);
  });
  const ended = once(server, 'exit');
  const url = (name: string) => `postgres://${USER}@127.0.0.1:${port}/${name}`;
  const admin = await connected(
    url('postgres'),
    () => server.exitCode === null,
    () => log,
  );
  let databases = 0;
  return {
    pid: server.pid as number,
    async database() {
      const name = `test_${++databases}`;
      await admin.query(`CREATE DATABASE ${name}`);
      return url(name);
    },
    async stop() {
      await admin.end().catch(() => {});
      server.kill('SIGCONT');
      server.kill('SIGQUIT');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function ownerOf(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync('id', [flag, USER], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function connected(url: string, isAlive: () => boolean, log: () => string): Promise<pg.Client> {
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    // The server is ended with its connections open.
    client.on('error', () => {});
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (!isAlive()) throw new Error(`PostgreSQL ended: ${log()}`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
