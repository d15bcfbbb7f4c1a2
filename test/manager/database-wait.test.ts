import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { Client } from '../support/manager/manager-client.ts';
import { optionsOf, postgres, tokenOf } from '../support/manager/postgres-manager.ts';
import { ManagerProgram } from '../support/manager-program.ts';
import { postgresPrograms } from '../support/postgres.ts';

const SANDBOXES = '/api/v1/sandboxes';
const SETTLED = { timeout: 60_000, interval: 200 };

describe.skipIf(postgresPrograms() === null)('a start while PostgreSQL is away', () => {
  it('waits for it, alive and not ready, and logs that once', async () => {
    const server = await postgres();
    const database = await server.database();
    const token = await tokenOf(database);
    await server.end();
    const port = await freePort();
    const program = ManagerProgram.begin(optionsOf(database, port));
    onTestFinished(() => program.end('SIGKILL'));
    const team = new Client(() => `http://127.0.0.1:${port}`, token);
    await eventually(async () => expect((await team.get('/healthz')).status).toBe(200), SETTLED);
    for (const path of ['/readyz', SANDBOXES]) {
      const { status, error, headers } = await team.get(path);
      expect([status, error?.code, headers.get('retry-after')]).toEqual([503, 'unavailable', '1']);
    }
    await server.begin();
    await eventually(async () => expect((await team.get('/readyz')).status).toBe(200), SETTLED);
    await team.claim();
    expect(program.log.match(/waiting for it before starting/g)).toHaveLength(1);
    expect(program.log).toMatch(/"reason":"connection refused \(ECONNREFUSED 127\.0\.0\.1:\d+\)"/);
    expect(program.log.match(/the database answers; the start goes on/g)).toHaveLength(1);
  });

  it('ends with exit 0 on a signal', async () => {
    const program = ManagerProgram.begin(optionsOf(`postgres://127.0.0.1:${await freePort()}/x`));
    await eventually(() => expect(program.log).toContain('waiting for it before starting'), SETTLED);
    await program.end('SIGTERM');
    expect(program.child.exitCode).toBe(0);
  });

  it('fails at once if the database does not exist or the password is wrong', async () => {
    const server = await postgres();
    const unknown = new URL(await server.database());
    unknown.pathname = '/nowhere';
    const foreign = new URL(await server.database());
    foreign.username = 'nobody';
    for (const [url, reason] of [
      [unknown, /^sandbox-manager: --database cannot be used: .*"nowhere" does not exist\n$/],
      [foreign, /^sandbox-manager: --database cannot be used: .*"nobody"\n$/],
    ] as const) {
      const program = ManagerProgram.begin(optionsOf(url.href));
      await program.ended;
      expect(program.child.exitCode).toBe(1);
      expect(program.log).toMatch(reason);
    }
  });
});
