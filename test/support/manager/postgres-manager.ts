import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { runManagerCommand } from '../manager-program.ts';
import { type PostgresServer, startPostgres } from '../postgres.ts';
import { scratchFolder } from '../scratch.ts';

/** A PostgreSQL of the test's own; it ends with the test. */
export async function postgres(): Promise<PostgresServer> {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  return server;
}

/** The options of a manager without a runtime on a database. `port` 0: any free one. */
export function optionsOf(database: string, port = 0): string[] {
  const folder = scratchFolder();
  const files = ['--secret-key-file', join(folder, 'key'), '--data-dir', join(folder, 'data')];
  const where = ['--listen', `127.0.0.1:${port}`, '--database', database];
  return [...where, '--runtime', 'none', '--allow-webhook-cidr', '127.0.0.0/8', ...files];
}

/** A token of `team_1` that may change sandboxes and read deliveries. */
export async function tokenOf(database: string): Promise<string> {
  const scopes = ['--scope', 'sandboxes:write', '--scope', 'webhooks:read'];
  return runManagerCommand('token', 'create', '--team', 'team_1', ...scopes, '--database', database);
}
