import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { letsAnybodyIn } from '../../../src/manager/database/postgres-exposure.ts';
import { freePort } from '../../support/free-port.ts';
import { postgresPrograms, startPostgres } from '../../support/postgres.ts';

async function urlOf(authentication: 'trust' | 'scram-sha-256', username?: string): Promise<string> {
  const server = await startPostgres({}, authentication);
  onTestFinished(() => server.stop());
  const url = new URL(await server.database());
  if (username !== undefined) url.username = username;
  return url.href;
}

describe.skipIf(postgresPrograms() === null)('a PostgreSQL', () => {
  it('that trusts everybody lets anybody in, also as another user than that of the URL', async () => {
    expect(await letsAnybodyIn(await urlOf('trust'))).toBe(true);
    expect(await letsAnybodyIn(await urlOf('trust', 'nobody-of-this-name'))).toBe(true);
  });

  it('that asks for a password does not', async () => {
    expect(await letsAnybodyIn(await urlOf('scram-sha-256'))).toBe(false);
  });
});

it('a server on a Unix socket is not asked, one that is down or silent lets nobody in', async () => {
  expect(await letsAnybodyIn('postgres://%2Fvar%2Frun%2Fpostgresql/x')).toBe(false);
  expect(await letsAnybodyIn('postgres:///x?host=/var/run/postgresql')).toBe(false);
  expect(await letsAnybodyIn(`postgres://127.0.0.1:${await freePort()}/x`)).toBe(false);
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  onTestFinished(() => void silent.close());
  await new Promise((resolve) => silent.once('listening', resolve));
  const { port } = silent.address() as AddressInfo;
  expect(await letsAnybodyIn(`postgres://127.0.0.1:${port}/x`)).toBe(false);
});
