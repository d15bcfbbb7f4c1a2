import { once } from 'node:events';
import net from 'node:net';
import { describe, expect } from 'vitest';
import { Authority, type KeyPair } from './support/certificates.ts';
import { Daemon, SECRET } from './support/daemon.ts';
import { FakeClock } from './support/fake-clock.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { fault, type Scene } from './support/scene.ts';
import { until } from './support/until.ts';

describe('tls', () => {
  for (const [name, make] of [
    [
      'a certificate that nobody vouches for',
      (scene: Scene) => new Authority(scene, 'another-authority').issue(),
    ],
    ['a certificate for another name', (_: Scene, ours: Authority) => ours.issue({ name: 'elsewhere.test' })],
    [
      'a certificate that has expired',
      (_: Scene, ours: Authority) => ours.issue({ from: new Date('2020-01-01'), to: new Date('2021-01-01') }),
    ],
  ] as const) {
    fault(
      `F29 ${name}: no byte of a body is sent, and it is tried again until it is right`,
      { needs: ['openssl'], beside: true },
      async (scene) => {
        const authority = new Authority(scene);
        const wrong = await secureReceiver(scene, make(scene, authority));
        const daemon = await startTrusting(scene, authority, wrong);
        const ledger = new Ledger();
        await ledger.publish(daemon);
        const [event_id = ''] = ledger.acknowledged.keys();
        const attempts = await until('it was tried', async () => {
          const delivery = await daemon.delivery(event_id);
          return delivery.attempts.length > 0 ? delivery.attempts : null;
        });
        expect(attempts[0]).toMatchObject({ status: null, error: 'tls' });
        expect((await daemon.delivery(event_id)).state).toBe('pending');
        expect(wrong.requests).toEqual([]);
        await wrong.down();
        const right = await secureReceiver(scene, authority.issue(), wrong.port);
        await expectKept({ receiver: right, ledger });
      },
    );
  }

  fault(
    'F29 a port that speaks no TLS: no byte of a body is sent, and it is tried again',
    { beside: true },
    async (scene) => {
      let received = '';
      const server = net.createServer((socket) => {
        socket.on('error', () => {});
        socket.on('data', (chunk) => {
          received += chunk.toString('latin1');
          socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
        });
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      scene.undo(() => server.close());
      const { port } = server.address() as net.AddressInfo;
      const daemon = await Daemon.start(scene, { webhook_url: `https://localhost:${port}/hook` });
      const ledger = new Ledger();
      await ledger.publish(daemon, { canary: 'never on this wire' });
      const [event_id = ''] = ledger.acknowledged.keys();
      const attempt = await until('it was tried', async () => (await daemon.delivery(event_id)).attempts[0]);
      expect(attempt).toMatchObject({ status: null, error: 'tls' });
      expect(received).not.toContain('canary');
      expect(received).not.toContain('POST');
    },
  );

  fault(
    'F29 a start is refused where the environment switches the checks off',
    { beside: true },
    async (scene) => {
      const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
      const daemon = await Daemon.start(scene, {
        webhook_url: 'https://localhost:9/',
        env,
        until: 'nothing',
      });
      expect((await daemon.ended()).code).toBe(1);
      const lines = daemon.stderr.filter((line) => line.startsWith('sandboxd:'));
      expect(lines).toEqual([expect.stringContaining('NODE_TLS_REJECT_UNAUTHORIZED')]);
    },
  );

  fault(
    'F50 a clock years behind: the certificate is not valid yet, and is when the clock is right',
    { needs: ['openssl', 'libfaketime'], beside: true },
    async (scene) => {
      const authority = new Authority(scene);
      const receiver = await secureReceiver(scene, authority.issue());
      const clock = new FakeClock(scene, '-6y');
      const daemon = await startTrusting(scene, authority, receiver, clock.env);
      const ledger = new Ledger();
      await ledger.publish(daemon);
      const [event_id = ''] = ledger.acknowledged.keys();
      const attempt = await until('it was tried', async () => (await daemon.delivery(event_id)).attempts[0]);
      expect(attempt).toMatchObject({ status: null, error: 'tls' });
      expect(attempt.started_at < '2022').toBe(true);
      expect(receiver.requests).toEqual([]);
      clock.step('+0');
      await expectKept({ receiver, ledger });
      const delivery = await daemon.delivery(event_id);
      expect(JSON.parse(delivery.body).timestamp < '2022').toBe(true);
    },
  );
});

function secureReceiver(scene: Scene, tls: KeyPair, port = 0): Promise<HostileReceiver> {
  return HostileReceiver.start(scene, { secret: SECRET, host: 'localhost', tls, port });
}

/** A daemon that trusts the case's authority. */
function startTrusting(
  scene: Scene,
  authority: Authority,
  receiver: HostileReceiver,
  env = {},
): Promise<Daemon> {
  return Daemon.start(scene, {
    webhook_url: receiver.url,
    env: { NODE_EXTRA_CA_CERTS: authority.certificate_file, ...env },
  });
}
