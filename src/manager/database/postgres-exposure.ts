import pg from 'pg';

/** Made with PostgreSQL itself, and what is let in without a password where anybody is. */
const SUPERUSER = 'postgres';
const ANSWER_MS = 2_000;

/**
 * Whether PostgreSQL lets somebody in who knows neither password nor certificate, as the user of the URL or as its
 * first superuser. Found out by trying; false for one that is reached by a Unix socket or does not answer.
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
    // Asked for only where the server wants one.
    password: () => {
      throw new Error('a password is asked for');
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
