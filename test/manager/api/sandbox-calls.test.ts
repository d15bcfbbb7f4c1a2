import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { eventually } from '../../support/eventually.ts';
import { DaemonRuntime } from '../../support/manager/daemon-runtime.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';

const LATER = { timeout: 60_000, interval: 20 };

/** A manager on a clock that the test moves, and a sandbox that is idle after 60 s. */
async function scene(config: object) {
  const clock = new ManualClock();
  const database = `sqlite:${join(scratchFolder(), 'manager.db')}`;
  const { manager, client } = await startManager(database, { runtime: new DaemonRuntime(), clock });
  const team = await client('team_1', 'sandboxes:write');
  const path = `/api/v1/sandboxes/${await team.claim({ idle_ttl: 60, ...config })}`;
  const record = async () => (await team.get(path)).data;
  return {
    ...{ team, path, record, clock },
    stranger: await client('team_2', 'sandboxes:write'),
    /** Lets time pass as the jobs of the manager see it. */
    async pass(by_ms: number): Promise<void> {
      for (let left_ms = by_ms; left_ms > 0; left_ms -= 500) await clock.advance(Math.min(500, left_ms));
    },
    async attach(): Promise<WebSocket> {
      const { data } = await team.post(`${path}/processes`, { command: ['cat'], stdin: 'pipe' });
      const url = `${manager.url}${path}/processes/${data.process_id}/attach`.replace(/^http/, 'ws');
      const socket = new WebSocket(url, { headers: { authorization: `Bearer ${team.token}` } });
      await once(socket, 'open');
      return socket;
    },
  };
}

it('a stream that is open keeps a sandbox from being idle; its idle time begins when it ends', async () => {
  const { record, pass, attach, clock } = await scene({});
  expect(await record()).toMatchObject({ status: 'running', idle_ttl: 60 });
  const socket = await attach();
  await pass(300_000);
  expect((await record()).status).toBe('running');
  socket.terminate();
  const ended_ms = clock.wallMs();
  await eventually(async () => {
    await pass(500);
    expect((await record()).status).toBe('paused');
  }, LATER);
  expect(clock.wallMs() - ended_ms).toBeGreaterThanOrEqual(60_000);
});

it('calls of processes and files are use; of deliveries, of the record, and of strangers are not', async () => {
  const { record, pass, team, stranger, path } = await scene({});
  await pass(40_000);
  expect((await team.get(`${path}/files/list?path=/tmp&limit=1`)).status).toBe(200);
  await pass(40_000);
  expect((await team.get(`${path}/processes`)).status).toBe(200);
  await pass(40_000);
  expect((await record()).status).toBe('running');
  expect((await team.get(`${path}/webhook/deliveries`)).status).toBe(200);
  expect((await stranger.get(`${path}/processes`)).status).toBe(404);
  await pass(19_000);
  expect((await record()).status).toBe('running');
  await pass(2_000);
  await eventually(async () => expect((await record()).status).toBe('paused'), LATER);
  expect((await team.get(`${path}/processes`)).status).toBe(409);
});

it('a call resumes a sandbox with auto_resume that was idle, which starts its idle time anew', async () => {
  const { record, pass, team, path } = await scene({ auto_resume: true });
  await pass(61_000);
  await eventually(async () => expect((await record()).status).toBe('paused'), LATER);
  expect((await team.get(`${path}/processes`)).status).toBe(200);
  await pass(59_000);
  expect(await record()).toMatchObject({ status: 'running', runtime_generation: 2 });
  await pass(2_000);
  await eventually(async () => expect((await record()).status).toBe('paused'), LATER);
});
