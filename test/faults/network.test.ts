import { existsSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect } from 'vitest';
import { ask } from './support/ask.ts';
import { Daemon, SECRET } from './support/daemon.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { type Lie, LyingDns } from './support/lying-dns.ts';
import { FarReceiver, Network } from './support/network.ts';
import { fault } from './support/scene.ts';
import { timed, until } from './support/until.ts';

const NAME = 'receiver.fault.test';

describe('dns and network', () => {
  for (const lie of ['no such name', 'failure', 'silence'] satisfies Lie[]) {
    fault(
      `F31 ${lie} from the name server: retried, never terminal, and publishing does not notice`,
      { needs: ['root', 'unshare'], beside: true, timeout_ms: 90_000 },
      async (scene) => {
        const receiver = await HostileReceiver.start(scene, { secret: SECRET });
        const dns = await LyingDns.start(scene, lie);
        const daemon = await Daemon.start(scene, {
          webhook_url: `http://${NAME}:${receiver.port}/hook`,
          through: dns.through,
          options: ['--attempt-timeout-ms', '3000'],
        });
        const ledger = new Ledger();
        for (let n = 0; n < 20; n++) {
          const { result, took_ms } = await timed(() => ledger.publish(daemon));
          expect(result?.status).toBe(202);
          expect(took_ms).toBeLessThan(10_000);
        }
        const [event_id = ''] = ledger.acknowledged.keys();
        const attempt = await until(
          'it was tried',
          async () => (await daemon.delivery(event_id)).attempts[0],
        );
        expect(attempt).toMatchObject({ status: null, error: 'dns' });
        expect(attempt.duration_ms).toBeLessThan(3_500);
        dns.lie = '127.0.0.1';
        await expectKept({ receiver, ledger, within_ms: 60_000 });
        await until('their outcomes are on disk', async () => (await daemon.sandbox()).outbox.pending === 0);
        expect((await daemon.sandbox()).outbox.failed).toBe(0);
      },
    );
  }

  fault('F31 a name that moves is followed', { needs: ['root', 'unshare'], beside: true }, async (scene) => {
    const here = await HostileReceiver.start(scene, { secret: SECRET });
    const dns = await LyingDns.start(scene, '127.0.0.1');
    const there = await HostileReceiver.start(scene, { secret: SECRET, host: '127.0.0.7', port: here.port });
    const daemon = await Daemon.start(scene, {
      webhook_url: `http://${NAME}:${here.port}/hook`,
      through: dns.through,
    });
    const before = new Ledger();
    await before.publishMany(daemon, 3);
    await expectKept({ receiver: here, ledger: before });
    dns.lie = '127.0.0.7';
    await here.down();
    const after = new Ledger();
    await after.publishMany(daemon, 3);
    await expectKept({ receiver: there, ledger: after });
  });

  fault(
    'F32 packets that are dropped, on new and on open connections: the deadline, then again',
    { needs: ['root', 'network namespace', 'nft'], beside: true },
    async (scene) => {
      const network = new Network(scene);
      const receiver = await FarReceiver.start(scene, network, SECRET);
      const daemon = await Daemon.start(scene, {
        webhook_url: `http://127.0.0.1:${receiver.port}/hook`,
        through: network.through,
        socket_path: scene.path('control.sock'),
        options: ['--attempt-timeout-ms', '1500'],
      });
      await until('sandbox.ready is delivered', () => receiver.requests.length > 0);
      network.dropTo(receiver.port);
      const ledger = new Ledger();
      await ledger.publishMany(daemon, 5);
      const [event_id = ''] = ledger.acknowledged.keys();
      const attempt = await until('it was tried', async () => (await daemon.delivery(event_id)).attempts[0]);
      expect(['timeout', 'connect']).toContain(attempt.error);
      expect(attempt.duration_ms).toBeLessThan(2_000);
      network.passEverything();
      await until('all is delivered', async () => (await daemon.sandbox()).outbox.pending === 0, 40_000);
      const received = new Set(receiver.requests.map((request) => request.event_id));
      expect([...ledger.acknowledged.keys()].every((id) => received.has(id))).toBe(true);
      expect(receiver.requests.every(({ is_signed }) => is_signed)).toBe(true);
    },
  );

  fault(
    'F32 a link of 64 kbit: what fits is delivered, and nothing is held longer than its deadline',
    { needs: ['root', 'network namespace', 'tc'], beside: true },
    async (scene) => {
      const network = new Network(scene);
      const receiver = await FarReceiver.start(scene, network, SECRET);
      const daemon = await Daemon.start(scene, {
        webhook_url: `http://127.0.0.1:${receiver.port}/hook`,
        through: network.through,
        socket_path: scene.path('control.sock'),
        options: ['--attempt-timeout-ms', '3000'],
      });
      await until('sandbox.ready is delivered', () => receiver.requests.length > 0);
      network.slowTo(64);
      const small = new Ledger();
      await small.publishMany(daemon, 3);
      await until('the small ones are there', async () => (await daemon.sandbox()).outbox.pending === 0);
      const large = new Ledger();
      await large.publish(daemon, { filler: 'x'.repeat(400_000) });
      const [event_id = ''] = large.acknowledged.keys();
      const attempt = await until('it was tried', async () => (await daemon.delivery(event_id)).attempts[0]);
      expect(attempt.error).toBe('timeout');
      expect(attempt.duration_ms).toBeLessThan(3_500);
      expect((await daemon.delivery(event_id)).state).toBe('pending');
    },
  );

  fault(
    'F41 localhost is both 127.0.0.1 and ::1 whatever the name resolves to, and nothing else',
    { needs: ['root', 'unshare'], beside: true },
    async (scene) => {
      writeFileSync(scene.path('hosts'), '::1 localhost\n');
      const script = 'mount --bind "$0" /etc/hosts && exec "$@"';
      const daemon = await Daemon.start(scene, {
        webhook_url: 'http://127.0.0.1:9/',
        through: ['unshare', '-m', 'sh', '-c', script, scene.path('hosts')],
      });
      for (const host of ['127.0.0.1', ...(hasIpv6() ? ['[::1]'] : [])]) {
        expect((await ask(`http://${host}:${daemon.port}/healthz`)).status).toBe(200);
      }
      const others = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
      const foreign = others
        .filter(({ internal, family }) => !internal && family === 'IPv4')
        .map(({ address }) => address);
      for (const address of ['127.0.0.2', ...foreign])
        expect(await connects(address, daemon.port)).toBe('ECONNREFUSED');
    },
  );

  fault(
    'F42 a port that is taken: one clear line, and the state directory is left alone',
    { beside: true },
    async (scene) => {
      const server = net.createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      scene.undo(() => server.close());
      const { port } = server.address() as net.AddressInfo;
      const daemon = await Daemon.start(scene, {
        webhook_url: 'http://127.0.0.1:9/',
        options: ['--port', String(port)],
        until: 'nothing',
      });
      expect(await daemon.ended()).toEqual({ code: 1, signal: null });
      expect(daemon.stderr).toEqual([`sandboxd: --port ${port} on localhost is in use by another program`]);
      expect(existsSync(daemon.state_dir)).toBe(false);
    },
  );
});

function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));
}

function connects(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port, timeout: 3_000 });
    const settle = (what: string) => {
      socket.destroy();
      resolve(what);
    };
    socket.once('connect', () => settle('connected'));
    socket.once('timeout', () => settle('timeout'));
    socket.once('error', (error: NodeJS.ErrnoException) => settle(error.code ?? ''));
  });
}
