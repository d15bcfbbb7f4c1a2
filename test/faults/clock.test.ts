import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { describe, expect } from 'vitest';
import { Daemon, SECRET } from './support/daemon.ts';
import { FakeClock } from './support/fake-clock.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { fault } from './support/scene.ts';
import { hang, status, times } from './support/steps.ts';
import { until } from './support/until.ts';

const ATTEMPT_TIMEOUT_MS = 1_500;
const WINDOW_MS = 10_000;
const options = ['--attempt-timeout-ms', String(ATTEMPT_TIMEOUT_MS), '--delivery-concurrency', '4'];

describe('clock', () => {
  fault(
    'F49 a freeze in the middle of attempts: one attempt at a time for an event, then delivered, no stampede',
    { beside: true },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, options });
      await until('sandbox.ready is delivered', () => receiver.delivered().size === 1);
      receiver.requests.length = 0;
      receiver.behave(hang);
      const ledger = new Ledger();
      await ledger.publishMany(daemon, 20, 4);
      await until('attempts are under way', () => receiver.requests.length >= 4);
      daemon.signal('SIGSTOP');
      await sleep(10_000);
      const before = receiver.requests.length;
      let under_way = 0;
      let most = 0;
      receiver.behave((exchange) => {
        most = Math.max(most, ++under_way);
        setTimeout(() => {
          under_way -= 1;
          status(200)(exchange);
        }, 20);
      });
      daemon.signal('SIGCONT');
      await expectKept({ receiver, ledger });
      expect(most).toBeLessThanOrEqual(4);
      const afterwards = Map.groupBy(receiver.requests.slice(before), ({ event_id }) => event_id);
      for (const requests of afterwards.values()) expect(requests.length).toBe(1);
    },
  );

  for (const [step, name] of [
    ['+2d', 'two days on'],
    ['-2d', 'two days back'],
    ['+20y', 'twenty years on'],
  ] as const) {
    fault(
      `F59 the wall clock steps ${name}: retries neither stall nor flood, and nothing expires`,
      { needs: ['libfaketime'], beside: true },
      async (scene) => {
        const receiver = await HostileReceiver.start(scene, { secret: SECRET });
        const clock = new FakeClock(scene);
        const daemon = await Daemon.start(scene, { webhook_url: receiver.url, options, env: clock.env });
        await until('sandbox.ready is delivered', () => receiver.delivered().size === 1);
        receiver.requests.length = 0;
        receiver.behave(...times(5, status(503)), status(200));
        const ledger = new Ledger();
        await ledger.publish(daemon);
        await until('it was tried', () => receiver.requests.length >= 2);
        clock.step(step);
        await ledger.publish(daemon);
        await expectKept({ receiver, ledger });
        expect(receiver.requests.length).toBeLessThanOrEqual(8);
        const { outbox } = await daemon.sandbox();
        expect(outbox.expired).toBe(0);
        const ids = [...ledger.acknowledged.keys()];
        expect(new Set(ids).size).toBe(ids.length);
      },
    );
  }

  fault(
    'F59 a window that ended while the daemon was away: one last attempt, then expired, whatever the wall clock says',
    { needs: ['libfaketime'], beside: true },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(status(503));
      const clock = new FakeClock(scene);
      const window = ['--delivery-window-ms', String(WINDOW_MS)];
      const start = () =>
        Daemon.start(scene, { webhook_url: receiver.url, options: [...options, ...window], env: clock.env });
      const first = await start();
      const ledger = new Ledger();
      await ledger.publishMany(first, 3);
      await first.stop('SIGKILL');
      clock.step('-25h');
      await sleep(WINDOW_MS);
      receiver.requests.length = 0;
      const again = await start();
      await until('they are expired', async () => ((await again.sandbox()).outbox.expired ?? 0) >= 3);
      for (const event_id of ledger.acknowledged.keys()) expect(receiver.of(event_id)).toHaveLength(1);
    },
  );

  fault(
    'F59 just before the window ends nothing expires, and a clock set back over a restart lengthens nothing',
    { needs: ['libfaketime'], beside: true },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(status(503));
      const clock = new FakeClock(scene);
      const first = await Daemon.start(scene, { webhook_url: receiver.url, options, env: clock.env });
      const ledger = new Ledger();
      await ledger.publishMany(first, 3);
      await first.stop('SIGKILL');
      clock.step('+23h');
      const second = await Daemon.start(scene, { webhook_url: receiver.url, options, env: clock.env });
      expect((await second.sandbox()).outbox.expired).toBe(0);
      await second.stop('SIGKILL');
      clock.step('-3d');
      receiver.behave(status(200));
      await Daemon.start(scene, { webhook_url: receiver.url, options, env: clock.env });
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F59 what was kept long enough is removed within 10 s, and its space given back',
    { beside: true, timeout_ms: 90_000 },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const first = await Daemon.start(scene, { webhook_url: receiver.url });
      for (let n = 0; n < 60; n++) await first.publish({ filler: 'x'.repeat(200_000) });
      await until('all are delivered', async () => (await first.sandbox()).outbox.pending === 0);
      await first.stop('SIGTERM');
      const size = () => statSync(`${first.state_dir}/outbox.db`).size;
      expect(size()).toBeGreaterThan(12_000_000);
      // As if they had ended two hours ago.
      const db = new Database(`${first.state_dir}/outbox.db`);
      db.prepare('UPDATE deliveries SET finished_ms = finished_ms - 7200000').run();
      db.close();
      const second = await Daemon.start(scene, { webhook_url: receiver.url });
      await until('they are gone', async () => ((await second.sandbox()).outbox.delivered ?? 0) <= 2, 11_000);
      await until('their space is given back', () => size() < 2_000_000, 20_000);
    },
  );
});
