import pg from 'pg';

/** The superuser of every new cluster, and the first to be accepted where no password is required. */
const SUPERUSER = 'postgres';
const ANSWER_MS = 2_000;

/**
 * Whether PostgreSQL accepts a connection without password or certificate, as the user of the URL or as the first
 * superuser. Tries to connect; false for a server on a Unix socket, or one that does not answer within 2 s.
 */
export async function letsAnybodyIn(url: string): Promise<boolean> {
  const { hostname, port, pathname, username, searchParams } = new URL(url);
  const host = searchParams.get('host') ?? decodeURIComponent(hostname);
  if (host.startsWith('/')) return false;
  const user = decodeURIComponent(username);
  const users = [...new Set([user === '' ? undefined : user, SUPERUSER])];
  const attempts = users.flatMap((each) =>
    [false, { rejectUnauthorized: false }].map((ssl) =>
      isLetIn({
        ...(host === '' ? {} : { host }),
        ...(port === '' ? {} : { port: Number(port) }),
        ...(each === undefined ? {} : { user: each }),
        database: decodeURIComponent(pathname.slice(1)),
        ssl,
      }),
    ),
  );
  return (await Promise.all(attempts)).includes(true);
}

async function isLetIn(config: pg.ClientConfig): Promise<boolean> {
  const client = new pg.Client({
    ...config,
    connectionTimeoutMillis: ANSWER_MS,
    // Called only if the server requires one.
    password: () => {
      throw new Error('a password is required');
    },
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    void client.end().catch(() => {});
  }
}
