import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { type RunningManager, startManager } from '../../support/manager/running-manager.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';
import { type PostgresServer, postgresPrograms, startPostgres } from '../../support/postgres.ts';

const SANDBOXES = '/api/v1/sandboxes';
/** What whoever asks waits at most. */
const AT_MOST_MS = 2_000;

async function scene() {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  const runtime = new ScriptedRuntime();
  const running = await startManager(await server.database(), { runtime });
  const team = await running.client('team_1', 'sandboxes:write');
  return { ...running, server, runtime, team, path: `${SANDBOXES}/${await team.claim()}` };
}

/** Signals the server with all of its processes. */
function signal({ pid }: PostgresServer, name: NodeJS.Signals): void {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  for (const each of [pid, ...children.map(Number)]) process.kill(each, name);
}

async function refusesQuickly(team: Client, { manager }: RunningManager, path: string): Promise<void> {
  const calls = [
    () => team.get(path),
    () => team.get(SANDBOXES),
    () => team.post(SANDBOXES),
    () => team.call('DELETE', path),
    () => team.get('/readyz'),
  ];
  await Promise.all(
    calls.map(async (call) => {
      const began_ms = performance.now();
      const { status, error, headers } = await call();
      expect(status).toBe(503);
      expect(error?.code).toBe('unavailable');
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(performance.now() - began_ms).toBeLessThan(AT_MOST_MS);
    }),
  );
  expect((await fetch(`${manager.url}/healthz`)).status).toBe(200);
  expect((await fetch(`${manager.url}/metrics`)).status).toBe(200);
}

describe.skipIf(postgresPrograms() === null)('PostgreSQL that is lost', () => {
  it('is 503 within 2 s while it hangs, and nothing is half-done when it is back', async () => {
    const { server, team, path, ...running } = await scene();
    signal(server, 'SIGSTOP');
    await refusesQuickly(team, running, path);
    signal(server, 'SIGCONT');
    await eventually(async () => expect((await team.get(path)).status).toBe(200), { timeout: 60_000 });
    // A claim that was refused has left nothing, or is being undone.
    await eventually(async () => expect((await team.get(SANDBOXES)).data.count).toBeLessThanOrEqual(1), {
      timeout: 60_000,
      interval: 200,
    });
    expect((await team.post(SANDBOXES)).status).toBe(201);
  });

  it('is used again at once after it dropped every connection', async () => {
    const { server, database, team, path } = await scene();
    await server.dropConnections(database);
    await eventually(async () => expect((await team.get(path)).status).toBe(200));
    expect((await team.call('DELETE', path)).status).toBe(202);
  });

  it('is 503 while it is down, and found when it is back', async () => {
    const { server, team, path, ...running } = await scene();
    await server.end();
    await refusesQuickly(team, running, path);
    await server.begin();
    await eventually(async () => expect((await team.get(path)).status).toBe(200), { timeout: 60_000 });
    expect((await team.post(`${path}/pause`)).status).toBe(200);
  });
});
