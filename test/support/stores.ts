import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { type PostgresServer, postgresPrograms, startPostgres } from './postgres.ts';

/** What a suite gets: the `--database` URL of a new, empty database at each call. */
export type FreshDatabase = () => Promise<string>;

/** Runs one suite on SQLite and on a real PostgreSQL; where that is not installed it is skipped by name. */
export function describeOnStores(title: string, suite: (fresh: FreshDatabase) => void): void {
  describe(`${title}, on SQLite`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandbox-sqlite-'));
    let databases = 0;
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    suite(async () => `sqlite:${join(folder, `${++databases}.db`)}`);
  });
  describe.skipIf(postgresPrograms() === null)(`${title}, on PostgreSQL`, () => {
    let server: PostgresServer | undefined;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.stop());
    suite(async () => (server as PostgresServer).database());
  });
}
