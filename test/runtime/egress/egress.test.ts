import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { requestDaemon } from '../../../src/runtime/control-client.ts';
import type { Carrier } from '../../../src/runtime/egress/carrier.ts';
import { Egress } from '../../../src/runtime/egress/egress.ts';
import { parseCidr } from '../../../src/webhook/address.ts';
import { AddressGuard } from '../../../src/webhook/address-guard.ts';
import { authorityOf } from '../../../src/webhook/connect-method.ts';
import { SharedLookup } from '../../../src/webhook/lookup.ts';
import { verify } from '../../../src/webhook/signature.ts';
import { HttpTransport } from '../../../src/webhook/transport.ts';
import { selfSigned } from '../../support/certificate.ts';
import { startConsumer } from '../../support/consumer.ts';
import { type Running, startDaemon } from '../../support/daemon/running-daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { type RawRequest, rawServer } from '../../support/hostile-server.ts';
import { exchange } from '../../support/raw-socket.ts';
import { LOOPBACK, SECRET } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

const TUNNELS_MAX = 16;

interface Attempt {
  error: string | null;
  error_detail: string | null;
}

/** A daemon whose webhook leaves through a manager, and the manager's side of that way. */
class Guarded {
  readonly running: Running;
  readonly socket: string;
  readonly url: string;
  egress: Egress | null = null;

  constructor(running: Running, socket: string, url: string) {
    this.running = running;
    this.socket = socket;
    this.url = url;
  }

  static async start(url: string, ...args: string[]): Promise<Guarded> {
    const socket = join(scratchFolder(), 'control.sock');
    const running = await startDaemon('--await-init', '--control-socket', socket, ...args);
    const webhook = { url, secret: SECRET, egress: 'manager' };
    const body = { sandbox_id: 'sbx-1', team_id: 'team_1', webhook };
    const answer = await requestDaemon(socket, {
      method: 'POST',
      path: '/sandbox/init',
      body,
      within_ms: 20_000,
    });
    expect(answer).toMatchObject({ status: 200 });
    return new Guarded(running, socket, url);
  }

  /** Starts the manager's side. */
  open(webhook_cidrs = LOOPBACK, carrier: Carrier | null = null): void {
    const egress = new Egress({ webhook_cidrs, clock: systemClock, log: createLog('silent') });
    onTestFinished(() => egress.stop());
    if (carrier) egress.carryBy(carrier);
    const webhook_authority = authorityOf(new URL(this.url));
    egress.open({ sandbox_id: 'sbx-1', socket_address: this.socket, webhook_authority });
    this.egress = egress;
  }

  async publish(payload: object): Promise<string> {
    const { status, json } = await this.running.publish(JSON.stringify(payload));
    expect(status).toBe(202);
    return json.data.event_id;
  }

  async delivery(
    event_id: string,
  ): Promise<{ state: string; attempts: Attempt[]; errors: (string | null)[] }> {
    const path = `/webhook/deliveries/${event_id}`;
    const answer = await requestDaemon(this.socket, { method: 'GET', path, within_ms: 20_000 });
    const { state, attempts } = (answer as { data: { state: string; attempts: Attempt[] } }).data;
    return { state, attempts, errors: attempts.map(({ error }) => error) };
  }
}

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function tlsConsumer(names: string) {
  const { key, cert } = selfSigned(names);
  const bodies: string[] = [];
  const server = createTlsServer({ key, cert }, async (request, response) => {
    const body = (await buffer(request)).toString();
    if (verify(SECRET, body, request.headers['x-service-signature'])) bodies.push(body);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `https://localhost:${(server.address() as AddressInfo).port}/hook`, cert, bodies };
}

describe('webhooks that leave through the manager', () => {
  it('use as many connections as attempts in flight, up to 16, and use them again', async () => {
    const waiting: RawRequest[] = [];
    let is_held = true;
    const consumer = await rawServer((request) => {
      waiting.push(request);
      if (is_held) return;
      for (const { socket } of waiting.splice(0)) {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      }
    });
    const guarded = await Guarded.start(consumer.url);
    guarded.open();
    await Promise.all(Array.from({ length: 40 }, (_, i) => guarded.publish({ i })));
    // The 17th would be in flight, too, if there were more than 16 connections.
    await eventually(() => expect(waiting).toHaveLength(TUNNELS_MAX));
    is_held = false;
    for (const { socket } of waiting.splice(0)) {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    }
    await eventually(() => expect(consumer.requests).toHaveLength(41));
    expect(consumer.connections).toBe(TUNNELS_MAX);
    for (const { head, body } of consumer.requests) {
      const signature = /^x-service-signature: (.*)$/im.exec(head)?.[1];
      expect(verify(SECRET, body, signature)).toBe(true);
    }
  });

  it('are carried by whoever is set, by their sandbox', async () => {
    const consumer = await startConsumer();
    const guarded = await Guarded.start(consumer.url);
    const carried: [string, Socket][] = [];
    guarded.open(LOOPBACK, {
      async carry(sandbox_id, connection) {
        carried.push([sandbox_id, connection]);
        return connection;
      },
    });
    await guarded.publish({ text: 'x'.repeat(10_000) });
    await consumer.arrival('agent.event');
    const sent = carried.reduce((sum, [, { bytesWritten }]) => sum + bytesWritten, 0);
    expect(sent).toBeGreaterThan(10_000);
    expect(new Set(carried.map(([sandbox_id]) => sandbox_id))).toEqual(new Set(['sbx-1']));
  });

  it('wait in the sandbox while whoever carries them refuses, and no connection is left', async () => {
    const consumer = await startConsumer();
    const guarded = await Guarded.start(consumer.url);
    const refused: Socket[] = [];
    guarded.open(LOOPBACK, {
      async carry(_sandbox_id, connection) {
        refused.push(connection);
        throw new Error('not now');
      },
    });
    const event_id = await guarded.publish({ step: 1 });
    await eventually(() => expect(refused.length).toBeGreaterThan(0));
    await eventually(() => expect(refused.every(({ destroyed }) => destroyed)).toBe(true));
    expect(consumer.deliveries).toEqual([]);
    expect((await guarded.delivery(event_id)).state).toBe('pending');
  });

  it('have their TLS checked in the daemon', async () => {
    const [trusted, unknown] = [await tlsConsumer('DNS:localhost'), await tlsConsumer('DNS:localhost')];
    const before = getCACertificates();
    setDefaultCACertificates([...before, trusted.cert]);
    onTestFinished(() => setDefaultCACertificates(before));
    const guarded = await Guarded.start(trusted.url);
    guarded.open();
    await guarded.publish({ step: 1 });
    await eventually(() => expect(trusted.bodies).toHaveLength(2));
    const refusing = await Guarded.start(unknown.url);
    refusing.open();
    const event_id = await refusing.publish({ step: 1 });
    await eventually(async () => expect((await refusing.delivery(event_id)).errors[0]).toBe('tls'));
    expect(unknown.bodies).toEqual([]);
  });

  it.each<[string, (port: number) => string, string[]]>([
    ['blocked', (port) => `http://localhost:${port}/`, []],
    ['blocked', (port) => `http://[::ffff:127.0.0.1]:${port}/`, []],
    ['dns', (port) => `http://does-not-exist.invalid:${port}/`, LOOPBACK],
    ['connect', (port) => `http://127.0.0.1:${port}/`, LOOPBACK],
  ])('fail with %s and the reason, as direct ones do', async (error, urlAt, webhook_cidrs) => {
    const url = urlAt(await closedPort());
    const guard = new AddressGuard(webhook_cidrs.flatMap((range) => parseCidr(range) ?? []));
    const transport = new HttpTransport(systemClock, 1, new SharedLookup(guard));
    onTestFinished(() => transport.close());
    const direct = await transport.send({ url, headers: {}, body: '{}' }, 15_000);
    const guarded = await Guarded.start(url);
    guarded.open(webhook_cidrs);
    const event_id = await guarded.publish({ step: 1 });
    const first = await eventually(async () => {
      const [attempt] = (await guarded.delivery(event_id)).attempts;
      if (!attempt) throw new Error('no attempt');
      return attempt;
    });
    expect(first.error).toBe(error);
    expect(first).toMatchObject({ error: direct.error, error_detail: direct.error_detail });
  });

  it('wait while no manager is there, and none is lost or repeated', async () => {
    const consumer = await startConsumer();
    const guarded = await Guarded.start(consumer.url, '--delivery-concurrency', '1');
    guarded.open();
    await consumer.arrival('sandbox.ready');
    // One attempt is under way when the manager ends.
    consumer.answer = () => {};
    const interrupted = await guarded.publish({ i: 0 });
    await consumer.arrival('agent.event');
    guarded.egress?.stop();
    // Its connection was a kept one: it is sent once more, for which there is no way.
    await eventually(async () => expect((await guarded.delivery(interrupted)).errors).toEqual(['connect']));
    consumer.deliveries.length = 0;
    consumer.answer = (_, response) => response.writeHead(204).end();
    const published: string[] = [];
    for (let i = 1; i < 20; i++) published.push(await guarded.publish({ i }));
    // An attempt waits for a tunnel as long as for a connection.
    await eventually(async () => {
      expect((await guarded.delivery(published[0] ?? '')).errors[0]).toBe('connect');
    });
    guarded.open();
    await eventually(() => expect(consumer.deliveries).toHaveLength(20));
    const arrived = consumer.deliveries.map(({ event }) => event.event_id);
    expect(arrived.toSorted()).toEqual([interrupted, ...published].toSorted());
    // What was never tried comes in its order.
    const untried = published.slice(2);
    expect(arrived.filter((event_id) => untried.includes(event_id))).toEqual(untried);
    expect(consumer.unsigned(SECRET)).toEqual([]);
  });

  it('are served by every manager there is', async () => {
    const consumer = await startConsumer();
    const guarded = await Guarded.start(consumer.url);
    guarded.open();
    const first = guarded.egress;
    guarded.open();
    await consumer.arrival('sandbox.ready');
    first?.stop();
    await guarded.publish({ step: 1 });
    await consumer.arrival('agent.event');
  });
});

describe('the way through the manager', () => {
  const upgrade = (more = '') =>
    `GET /api/v1/sandbox/egress HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: sandboxd-egress\r\n${more}\r\n`;

  it('cannot be opened by processes of the sandbox, with or without the token', async () => {
    const { port, token } = await startDaemon('--sandbox-id', 'sbx-1');
    const ask = (more = '') => exchange({ host: '127.0.0.1', port }, upgrade(more), { quiet_ms: 500 });
    expect(await ask()).toMatch(/^HTTP\/1\.1 401 /);
    expect(await ask('X-Control-Scope: manage\r\n')).toMatch(/^HTTP\/1\.1 401 /);
    expect(await ask(`Authorization: Bearer ${token}\r\n`)).toMatch(/^HTTP\/1\.1 403 /);
  });

  it('is chosen by the manager alone, and needs its scope', async () => {
    const { running, socket } = await Guarded.start('http://127.0.0.1:9/');
    const ask = (more = '') => exchange({ path: socket }, upgrade(more), { quiet_ms: 500 });
    expect(await ask()).toMatch(/^HTTP\/1\.1 403 /);
    expect(await ask('X-Control-Scope: write\r\n')).toMatch(/^HTTP\/1\.1 403 /);
    expect(await ask('X-Control-Scope: manage\r\n')).toMatch(/^HTTP\/1\.1 101 /);
    await running.daemon.stop('signal', null);
    const other = await startDaemon('--await-init');
    const webhook = { url: 'http://127.0.0.1:9/', egress: 'manager' };
    const body = JSON.stringify({ sandbox_id: 'sbx-1', team_id: '', webhook });
    const answer = await other.call('POST', '/api/v1/sandbox/init', { body });
    expect([answer.status, answer.json.error.details]).toEqual([400, { field: 'webhook.egress' }]);
  });

  it('is not there where the daemon connects by itself', async () => {
    const socket = join(scratchFolder(), 'control.sock');
    await startDaemon('--sandbox-id', 'sbx-1', '--control-socket', socket);
    const answer = await exchange({ path: socket }, upgrade('X-Control-Scope: manage\r\n'), {
      quiet_ms: 500,
    });
    expect(answer).toMatch(/^HTTP\/1\.1 409 /);
  });
});
