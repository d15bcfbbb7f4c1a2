import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { requestDaemon } from '../../../src/runtime/control-client.ts';
import { initBody } from '../../../src/runtime/daemon-requests.ts';
import { Keeper } from '../../../src/runtime/kubernetes/keeper/keeper.ts';
import { connectDaemon, type KeeperAddress } from '../../../src/runtime/kubernetes/keeper-client.ts';
import { BLOCK_ALL_LABEL } from '../../../src/runtime/kubernetes/names.ts';
import { PodEgress, withNetwork } from '../../../src/runtime/kubernetes/pod-egress.ts';
import { startConsumer } from '../../support/consumer.ts';
import { startDaemon } from '../../support/daemon/running-daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { exchange } from '../../support/raw-socket.ts';
import { LOOPBACK, SECRET, spec, webhook } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

const BLOCK_ALL = { network_mode: 'block-all' } as const;

/** A keeper as in a Pod, and the path at which it expects the daemon's socket. */
async function startKeeper() {
  const folder = scratchFolder();
  const [control, volume] = [join(folder, 'control'), join(folder, 'volume')];
  mkdirSync(join(control, 'run'), { recursive: true });
  const key = randomBytes(32);
  const port = await new Keeper(key, { control, volume }, systemClock).start(0);
  return { address: { host: '127.0.0.1', port, key }, socket: join(control, 'run/control.sock') };
}

/** A manager's way to whatever is behind a keeper; `connections` are those that it has made. */
function openWay(address: KeeperAddress, webhook_cidrs = LOOPBACK) {
  const connections: Socket[] = [];
  const keepers = {
    async connect() {
      const socket = await connectDaemon(address, systemClock);
      connections.push(socket);
      return socket;
    },
  };
  const egress = new PodEgress(keepers, { webhook_cidrs, clock: systemClock, log: createLog('silent') });
  onTestFinished(() => egress.stop());
  return { egress, connections };
}

it('marks Pods with block-all for policies, and with the place of their webhook for managers', () => {
  const pod = { metadata: { labels: { a: 'b' } }, spec: {} };
  const marked = (given: object) => withNetwork(pod, spec('sbx-1', given)).metadata;
  expect(marked(webhook('https://u.example/path?secret'))).toEqual({ labels: { a: 'b' } });
  expect(marked(BLOCK_ALL)).toEqual({ labels: { a: 'b', ...BLOCK_ALL_LABEL } });
  expect(marked({ ...BLOCK_ALL, ...webhook('https://u.example/path?secret') })).toEqual({
    labels: { a: 'b', ...BLOCK_ALL_LABEL },
    annotations: { 'sandboxd.dev/webhook': 'u.example:443' },
  });
});

it('delivers through keepers, by every manager there is, and by who sees the Pod after a restart', async () => {
  const consumer = await startConsumer();
  const { address, socket } = await startKeeper();
  const running = await startDaemon('--await-init', '--control-socket', socket);
  const of = spec('sbx-1', { ...webhook(consumer.url), ...BLOCK_ALL });
  const answer = await requestDaemon(() => connectDaemon(address, systemClock), {
    ...{ method: 'POST', path: '/sandbox/init', body: initBody(of, [], 'manager'), within_ms: 30_000 },
  });
  expect(answer).toMatchObject({ status: 200 });
  const [first, second] = [openWay(address), openWay(address)];
  first.egress.openFor(of);
  await consumer.arrival('sandbox.ready');
  second.egress.openFor(of);
  await eventually(() => expect(second.connections).toHaveLength(1));
  first.egress.stop();
  await running.publish('{"step":1}');
  await consumer.arrival('agent.event', 1);
  second.egress.stop();
  await running.publish('{"step":2}');
  const third = openWay(address);
  const { metadata } = withNetwork({ metadata: { labels: {} } }, of);
  third.egress.openTo('sbx-1', { ...metadata, name: 'sb', uid: 'sb', resourceVersion: '1' });
  await consumer.arrival('agent.event', 2);
  expect(consumer.unsigned(SECRET)).toEqual([]);

  // What is in the sandbox has no socket, and no route: with no key, a wrong one, and in plain text.
  expect(existsSync(socket)).toBe(false);
  await expect(connectDaemon({ ...address, key: randomBytes(32) }, systemClock)).rejects.toThrow();
  const connect = `CONNECT ${new URL(consumer.url).host} HTTP/1.1\r\n\r\n`;
  expect(await exchange(address, connect, { quiet_ms: 500 })).not.toMatch(/HTTP/);
  // A daemon that ends closes the way, which is tried no more until its Pod is seen to be well.
  await running.daemon.stop('signal', null);
  await eventually(() => expect(third.connections.every(({ destroyed }) => destroyed)).toBe(true));
});

it('leads a daemon that was taken over to its webhook alone, and not where webhooks may not go', async () => {
  const consumer = await startConsumer();
  const own = new URL(consumer.url).host;
  const asked = ['169.254.169.254:80', 'kubernetes.default.svc:443', '127.0.0.1:1', `x@${own}`, own];
  const answers: string[] = [];
  const { address, socket } = await startKeeper();
  const server = createServer({ allowHalfOpen: true }, (tunnel) => {
    let said = '';
    let is_open = false;
    tunnel.on('error', () => {});
    tunnel.setEncoding('latin1').on('data', (text: string) => {
      said += text;
      if (!said.endsWith('\r\n\r\n')) return;
      if (is_open) {
        answers.push(said.slice(9, 12));
        return void tunnel.destroy();
      }
      is_open = true;
      said = '';
      tunnel.write(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: sandboxd-egress\r\n\r\n',
      );
      const next = asked.shift();
      if (next !== undefined) tunnel.write(`CONNECT ${next} HTTP/1.1\r\nHost: ${next}\r\n\r\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(() => void server.close());
  chmodSync(socket, 0o600);
  const { egress } = openWay(address, []);
  egress.openFor(spec('sbx-1', { ...webhook(consumer.url), ...BLOCK_ALL }));
  // The last one is its own, which no --allow-webhook-cidr allows.
  await eventually(() => expect(answers).toEqual(['403', '403', '403', '403', '403']));
  expect(consumer.deliveries).toEqual([]);
});
