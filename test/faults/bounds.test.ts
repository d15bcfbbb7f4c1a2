import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { Daemon, SECRET } from './support/daemon.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { fault, type Scene } from './support/scene.ts';
import { until } from './support/until.ts';

async function stage(scene: Scene, options: string[]) {
  const receiver = await HostileReceiver.start(scene, { secret: SECRET });
  await receiver.down();
  const daemon = await Daemon.start(scene, { webhook_url: receiver.url, options });
  return { receiver, daemon, ledger: new Ledger() };
}

describe('bounds', () => {
  for (const [name, options, filler] of [
    ['records', ['--outbox-max-records', '30'], 10],
    ['bytes', ['--outbox-max-bytes', '300000'], 10_000],
  ] as const) {
    fault(
      `a full outbox (${name}) says so with Retry-After, drops nothing, keeps room for processes and heals`,
      { beside: true },
      async (scene) => {
        const { receiver, daemon, ledger } = await stage(scene, [...options]);
        const refused = await until('it is full', async () => {
          const answer = await ledger.publish(daemon, { filler: 'x'.repeat(filler) });
          return answer?.status === 202 ? null : answer;
        });
        expect(refused.status).toBe(503);
        expect(refused.json?.error?.code).toBe('outbox_full');
        expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
        expect(ledger.acknowledged.size).toBeGreaterThan(20);
        expect(ledger.acknowledged.size).toBeLessThan(40);
        const before = (await daemon.sandbox()).outbox.pending ?? 0;
        for (let n = 0; n < 5; n++) await daemon.run(['true']);
        await until(
          'their events are kept',
          async () => (await daemon.sandbox()).outbox.pending === before + 10,
        );
        expect((await ledger.publish(daemon))?.status).toBe(503);
        await receiver.up();
        await expectKept({ receiver, ledger });
        await until('there is room', async () => (await ledger.publish(daemon))?.status === 202);
        await expectKept({ receiver, ledger });
      },
    );
  }

  fault(
    'file events that meet a full outbox are told once there is room, a path at a time',
    { beside: true },
    async (scene) => {
      const watched = scene.path('watched');
      mkdirSync(watched);
      const { receiver, daemon, ledger } = await stage(scene, [
        '--watch-dir',
        watched,
        '--outbox-max-records',
        '20',
      ]);
      await until('it is full', async () => (await ledger.publish(daemon))?.status === 503);
      for (let round = 0; round < 20; round++) {
        for (const name of ['a', 'b', 'c']) writeFileSync(`${watched}/${name}`, `round ${round}`);
      }
      writeFileSync(`${watched}/gone`, '');
      await receiver.up();
      const told = () => receiver.requests.filter(({ event_type }) => event_type === 'file.modified');
      const paths = () => new Set(told().map(({ body }) => JSON.parse(body.toString('utf8')).payload.path));
      await until('each path is told', () =>
        ['a', 'b', 'c', 'gone'].every((name) => paths().has(`${watched}/${name}`)),
      );
      expect(told().length).toBeLessThan(20);
      await expectKept({ receiver, ledger });
      expect(existsSync(`${watched}/a`)).toBe(true);
    },
  );

  fault('an idempotency key holds over a kill and a refused commit', { beside: true }, async (scene) => {
    const receiver = await HostileReceiver.start(scene, { secret: SECRET });
    const first = await Daemon.start(scene, { webhook_url: receiver.url });
    const headers = { 'idempotency-key': 'order-7' };
    const one = await first.publish({ n: 'once' }, { headers });
    await first.stop('SIGKILL');
    const second = await Daemon.start(scene, { webhook_url: receiver.url });
    const two = await second.publish({ n: 'once' }, { headers });
    expect(two.status).toBe(202);
    expect(two.json?.data).toEqual(one.json?.data);
    expect((await second.publish({ n: 'other' }, { headers })).status).toBe(409);
    await until('it is delivered', async () => (await second.sandbox()).outbox.pending === 0);
    const bodies = receiver.requests.filter(({ body }) => body.includes('"n":"once"'));
    expect(new Set(bodies.map(({ event_id }) => event_id)).size).toBe(1);
  });
});
