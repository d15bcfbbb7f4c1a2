import { mkdirSync, writeFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { Daemon, SECRET } from './support/daemon.ts';
import { DiskShim } from './support/disk-shim.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { fault, type Scene } from './support/scene.ts';
import { until } from './support/until.ts';

/** Longer than a caller waits for a commit. */
const HANG_MS = 12_000;

async function start(receiver: HostileReceiver, setup: Scene, more: string[] = []) {
  const watch_dir = setup.path('work');
  const state_dir = setup.path('state');
  mkdirSync(watch_dir);
  mkdirSync(state_dir, { mode: 0o700 });
  const shim = new DiskShim(setup, state_dir);
  const options = ['--watch-dir', watch_dir, ...more];
  const daemon = await Daemon.start(setup, { webhook_url: receiver.url, state_dir, env: shim.env, options });
  // A start commits in the main thread; a commit that is under way when the disk hangs would take its time, too.
  await until('commits have a thread of their own', async () => {
    await daemon.publish({});
    return daemon.commitsApart();
  });
  await until('all is delivered, and that is on the disk', async () => {
    const { pending, delivered } = (await daemon.sandbox()).outbox;
    return pending === 0 && Number(delivered) > 1;
  });
  return { daemon, shim, watch_dir };
}

/** The events that were delivered, each once, in the order of their sequences. */
function told(receiver: HostileReceiver): Record<string, unknown>[] {
  const events = [...receiver.requests]
    .filter(({ answered }) => answered === 200)
    .map(({ body }) => JSON.parse(body.toString('utf8')) as { event_id: string; sequence: number });
  return [...new Map(events.map((event) => [event.event_id, event])).values()].toSorted(
    (a, b) => a.sequence - b.sequence,
  );
}

const typesOf = (receiver: HostileReceiver) => told(receiver).map(({ event_type }) => event_type);

describe('a disk that hangs', () => {
  fault(
    'F12 for longer than a pause waits: a pause that was refused is taken back, or was never told',
    { needs: ['cc', 'a look into daemons'], beside: true },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const { daemon, shim } = await start(receiver, scene);
      shim.fail(`sync slow ${HANG_MS}`);
      const answer = await daemon.ask('/api/v1/sandbox/pause', { method: 'POST' });
      expect(answer.status).toBe(503);
      shim.heal();
      expect((await daemon.sandbox()).state).toBe('running');
      await until('what was told is taken back', () => typesOf(receiver).includes('sandbox.resumed'));
      await until('it can be paused', async () => {
        return (await daemon.ask('/api/v1/sandbox/pause', { method: 'POST' })).status === 200;
      });
      await until('it is resumed', async () => {
        return (await daemon.ask('/api/v1/sandbox/resume', { method: 'POST' })).status === 200;
      });
      const changes = () => typesOf(receiver).filter((type) => /paused|resumed/.test(String(type)));
      await until('both are told', () => changes().length >= 4);
      expect(changes()).toEqual(['sandbox.paused', 'sandbox.resumed', 'sandbox.paused', 'sandbox.resumed']);
    },
  );

  fault(
    'F12 for longer than a publish waits: a change of a file is told once',
    { needs: ['cc', 'a look into daemons'], beside: true },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const { daemon, shim, watch_dir } = await start(receiver, scene);
      shim.fail(`sync slow ${HANG_MS}`);
      writeFileSync(`${watch_dir}/a`, 'text');
      // Answered only after the commit of the file's events was given up, or is through.
      expect((await daemon.publish({})).status).toBe(503);
      shim.heal();
      writeFileSync(`${watch_dir}/b`, 'text');
      const files = () =>
        told(receiver)
          .filter(({ event_type }) => event_type === 'file.modified')
          .map(({ payload }) => payload as { event_type: string; path: string })
          .map(({ event_type, path }) => `${event_type} ${path.slice(watch_dir.length + 1)}`);
      await until('the second file is told', () => files().includes('write b'), 40_000);
      expect(files().toSorted()).toEqual(['create a', 'create b', 'write a', 'write b']);
    },
  );

  fault(
    'F12 for longer than the last event waits: sandbox.killed is told once',
    { needs: ['cc', 'a look into daemons'], beside: true },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const { daemon, shim } = await start(receiver, scene, ['--shutdown-grace-ms', '30000']);
      shim.fail(`sync slow ${HANG_MS}`);
      daemon.signal('SIGTERM');
      await until('it waits for the outbox', () =>
        daemon.told('the outbox refused an event: it will be retried'),
      );
      shim.heal();
      await daemon.ended(60_000);
      const again = await Daemon.start(scene, { webhook_url: receiver.url, state_dir: daemon.state_dir });
      await until(
        'the second life is told',
        () => typesOf(receiver).filter((t) => t === 'sandbox.ready').length === 2,
      );
      expect(typesOf(receiver).filter((type) => type === 'sandbox.killed')).toHaveLength(1);
      await again.stop();
    },
  );
});

/** The calls at which the disk begins to hang: those of the move, and of the first commits in the thread. */
const MOMENTS = [1, 2, 3, 5, 8, 13, 21, 34];

describe('a disk that hangs while the outbox moves to its thread', () => {
  for (const moment of MOMENTS) {
    fault(
      `F12 from call ${moment} on: the API goes on, and nothing is lost`,
      { needs: ['cc'], beside: true },
      async (scene) => {
        const receiver = await HostileReceiver.start(scene, { secret: SECRET });
        const state_dir = scene.path('state');
        mkdirSync(state_dir, { mode: 0o700 });
        const shim = new DiskShim(scene, state_dir);
        const daemon = await Daemon.start(scene, { webhook_url: receiver.url, state_dir, env: shim.env });
        await until('the start is delivered and on the disk', async () => {
          const { pending, delivered } = (await daemon.sandbox()).outbox;
          return pending === 0 && delivered === 1;
        });
        shim.fail(`any hang ${moment}`);
        const publishing = daemon.publish({ moment });
        // All of these are answered by the main thread, while the hang lasts.
        for (const path of ['/healthz', '/readyz', '/metrics', '/api/v1/sandbox']) {
          for (let times = 0; times < 3; times++) await daemon.ask(path);
        }
        shim.heal();
        const { status } = await publishing;
        expect([202, 503]).toContain(status);
        await until('what follows it is delivered', async () => {
          await daemon.publish({ after: true });
          return told(receiver).some(({ payload }) => (payload as { after?: boolean }).after);
        });
        const kept = told(receiver).filter(
          ({ payload }) => (payload as { moment?: number }).moment === moment,
        );
        expect(kept).toHaveLength(status === 202 ? 1 : kept.length && 1);
      },
    );
  }
});

describe('a disk whose trouble is over', () => {
  fault(
    'F07 is found out by the daemon itself, without anybody asking or writing',
    { needs: ['cc', 'a look into daemons'] },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const { daemon, shim } = await start(receiver, scene);
      shim.fail('sync error');
      expect((await daemon.publish({})).status).toBe(503);
      await until('it is told', () => daemon.told('the outbox cannot be written'));
      shim.heal();
      await until('that it is over is told', () => daemon.told('the outbox can be written again'));
      expect((await daemon.readiness()).status).toBe(200);
    },
  );
});
