import { Agent, request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, it, vi } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { launch, type SandboxdProgram, startSandboxd } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

vi.setConfig({ testTimeout: 180_000 });

const SECRET = 'made for this test';
const ROUNDS = 12;
const PUBLISHERS = 8;

/** A publish over a kept connection; null where it was not acknowledged. */
function publish(agent: Agent, program: SandboxdProgram, payload: string): Promise<string | null> {
  return new Promise((resolve) => {
    const request = httpRequest(`${program.url}/api/v1/webhook/publish`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    request.on('error', () => resolve(null));
    request.on('response', async (response) => {
      const text = await textOf(response).catch(() => '');
      resolve(response.statusCode === 202 && text ? JSON.parse(text).data.event_id : null);
    });
    request.end(`{"payload":${payload}}`);
  });
}

describe('an acknowledged event', () => {
  it('reaches the consumer with the bytes that were published, signed, with the headers of the contract', async () => {
    const consumer = await startConsumer();
    const program = await startSandboxd([
      ...['--webhook-url', consumer.url, '--webhook-secret', SECRET],
      ...['--sandbox-id', 'sb-1', '--team-id', 'team-1'],
    ]);
    const payload = '{"price": 1.10,"huge":1e400,\n "id":12345678901234567890,"text":"ü🦊"}';
    const event_id = await program.publish(payload);
    const { body, headers } = await consumer.arrival('agent.event');
    expect(body).toMatch(/^\{"event_id":"evt_[^"]+","event_type":"agent\.event","timestamp":"[^"]+Z",/);
    expect(body.endsWith(`"sandbox_id":"sb-1","team_id":"team-1","sequence":2,"payload":${payload}}`)).toBe(
      true,
    );
    expect(consumer.unsigned(SECRET)).toEqual([]);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^sandboxd\/\d/),
      'ce-specversion': '1.0',
      'ce-id': event_id,
      'ce-source': '/sandboxes/sb-1',
      'ce-type': 'agent.event',
      'ce-sequence': '2',
      'x-service-attempt': '1',
    });
    const known =
      /^(host|connection|content-(type|length)|user-agent|accept(-encoding)?|x-service-(signature|attempt)|ce-.*)$/;
    expect(Object.keys(headers).filter((name) => !known.test(name))).toEqual([]);
  });

  it('is not lost, changed or doubled by a consumer that fails at first', async () => {
    const consumer = await startConsumer();
    const tries = new Map<string, number>();
    consumer.answer = ({ event }, response) => {
      const count = (tries.get(event.event_id) ?? 0) + 1;
      tries.set(event.event_id, count);
      if (count === 1 && event.sequence % 3 === 0) response.destroy();
      else response.writeHead(count === 1 && event.sequence % 3 === 1 ? 503 : 200).end('thanks');
    };
    const program = await startSandboxd(['--webhook-url', consumer.url, '--webhook-secret', SECRET]);
    const published = await Promise.all(Array.from({ length: 60 }, (_, i) => program.publish(`{"i":${i}}`)));
    await eventually(
      async () => {
        const { data } = await program.call('GET', '/api/v1/sandbox');
        expect(data.outbox).toMatchObject({ pending: 0, delivered: 61 });
      },
      { timeout: 60_000 },
    );
    expect(published.every((event_id) => consumer.find(event_id))).toBe(true);
    for (const [event_id, count] of tries) {
      const bodies = consumer.deliveries
        .filter(({ event }) => event.event_id === event_id)
        .map(({ body }) => body);
      expect(new Set(bodies).size).toBe(1);
      expect(count).toBe((consumer.find(event_id)?.event.sequence ?? 0) % 3 === 2 ? 1 : 2);
    }
    expect(consumer.unsigned(SECRET)).toEqual([]);
  });
});

describe('kill -9 under publishers', () => {
  it(`loses no acknowledged event and changes no body, ${ROUNDS} times over`, async () => {
    const consumer = await startConsumer();
    consumer.answer = ({ headers }, response) => {
      response.writeHead(headers['x-service-attempt'] === '1' && Math.random() < 0.3 ? 503 : 200).end('ok');
    };
    const state_dir = join(scratchFolder(), 'state');
    const args = ['--webhook-url', consumer.url, '--webhook-secret', SECRET, '--sandbox-id', 'sb-1'];
    const acknowledged = new Map<string, string>();
    for (let round = 0; round < ROUNDS; round++) {
      const program = await startSandboxd(args, { state_dir });
      const agent = new Agent({ keepAlive: true, maxSockets: PUBLISHERS });
      // Somewhere in the midst of it, told by what was acknowledged and not by a clock.
      const last = acknowledged.size + 1 + Math.floor(Math.random() * 150);
      let is_over = false;
      const publisher = async (name: number) => {
        for (let i = 0; !is_over; i++) {
          const payload = `{"round":${round},"by":${name},"i":${i}}`;
          const event_id = await publish(agent, program, payload);
          if (event_id) acknowledged.set(event_id, payload);
          if (acknowledged.size >= last && !is_over) {
            is_over = true;
            program.child.kill('SIGKILL');
          }
        }
      };
      await Promise.all(Array.from({ length: PUBLISHERS }, (_, name) => publisher(name)));
      await program.ended;
      agent.destroy();
    }
    await startSandboxd(args, { state_dir });
    const missing = () => {
      const arrived = new Set(consumer.deliveries.map(({ event }) => event.event_id));
      return [...acknowledged.keys()].filter((event_id) => !arrived.has(event_id));
    };
    await eventually(() => expect(missing()).toEqual([]), { timeout: 60_000, interval: 50 });
    const bodies = new Map<string, string>();
    const sequences = new Map<number, string>();
    for (const { body, event } of consumer.deliveries) {
      expect(bodies.get(event.event_id) ?? body).toBe(body);
      bodies.set(event.event_id, body);
      expect(sequences.get(event.sequence) ?? event.event_id).toBe(event.event_id);
      sequences.set(event.sequence, event.event_id);
    }
    for (const [event_id, payload] of acknowledged) {
      expect(bodies.get(event_id)?.endsWith(`"payload":${payload}}`)).toBe(true);
    }
    expect(consumer.unsigned(SECRET)).toEqual([]);
    expect(new Set(consumer.of('sandbox.ready').map(({ event }) => event.event_id)).size).toBe(1);
  });
});

describe('a restart', () => {
  it('of the same sandbox after a death repeats no sandbox.ready; after SIGTERM it is ready anew', async () => {
    const consumer = await startConsumer();
    const state_dir = join(scratchFolder(), 'state');
    const args = ['--webhook-url', consumer.url, '--sandbox-id', 'sb-1'];
    const first = await startSandboxd(args, { state_dir });
    await eventually(async () => {
      expect((await first.call('GET', '/api/v1/sandbox')).data.outbox).toMatchObject({ delivered: 1 });
    });
    await first.end('SIGKILL');
    const second = await startSandboxd(args, { state_dir });
    await second.publish('{"second":true}');
    await consumer.arrival('agent.event');
    expect(await second.end('SIGTERM')).toEqual({ code: 0, signal: null });
    await startSandboxd(args, { state_dir });
    await consumer.arrival('sandbox.ready', 2);
    expect(consumer.types).toEqual(['sandbox.ready', 'agent.event', 'sandbox.killed', 'sandbox.ready']);
    expect(consumer.of('sandbox.killed')[0]?.event.payload).toEqual({
      reason: 'signal',
      signal: 'SIGTERM',
      uptime_ms: expect.any(Number),
    });
    expect(consumer.deliveries.map(({ event }) => event.sequence)).toEqual([1, 2, 3, 4]);
  });

  it('delivers what was left undelivered', async () => {
    const consumer = await startConsumer();
    consumer.answer = (_, response) => response.writeHead(503).end();
    const state_dir = join(scratchFolder(), 'state');
    const args = ['--webhook-url', consumer.url, '--sandbox-id', 'sb-1'];
    const first = await startSandboxd(args, { state_dir });
    const event_id = await first.publish('{"left":true}');
    await first.end('SIGKILL');
    consumer.answer = (_, response) => response.writeHead(200).end();
    const before = consumer.deliveries.length;
    await startSandboxd(args, { state_dir });
    await eventually(
      () => expect(consumer.deliveries.slice(before).map(({ event }) => event.event_id)).toContain(event_id),
      { timeout: 60_000 },
    );
  });

  it("as another sandbox sends nothing of the first one's and starts numbering anew, with a new token", async () => {
    const consumer = await startConsumer();
    consumer.answer = (_, response) => response.writeHead(503).end();
    const state_dir = join(scratchFolder(), 'state');
    const parent = await startSandboxd(['--webhook-url', consumer.url, '--sandbox-id', 'parent'], {
      state_dir,
    });
    await parent.publish('{"of":"parent"}');
    const token = parent.token;
    await parent.end('SIGKILL');
    consumer.answer = (_, response) => response.writeHead(200).end();
    const before = consumer.deliveries.length;
    const child = await startSandboxd(['--webhook-url', consumer.url, '--sandbox-id', 'child'], {
      state_dir,
    });
    await child.publish('{"of":"child"}');
    await eventually(async () => {
      const { data } = await child.call('GET', '/api/v1/sandbox');
      expect(data.outbox).toMatchObject({ pending: 0, delivered: 2, foreign: 2 });
    });
    const sent = consumer.deliveries.slice(before).map(({ event }) => event);
    expect(sent.map(({ event_type, sequence }) => [event_type, sequence])).toEqual([
      ['sandbox.ready', 1],
      ['agent.event', 2],
    ]);
    expect(sent.every((event) => (event as { sandbox_id?: string }).sandbox_id === 'child')).toBe(true);
    expect(child.token).not.toBe(token);
    const listed = await child.call('GET', '/api/v1/webhook/deliveries?state=foreign');
    expect(listed.data.deliveries).toHaveLength(2);
  });
});

describe('a sandbox of a warm pool', () => {
  it('starts without identity, and its main command and its events with the init', async () => {
    const consumer = await startConsumer();
    const program = launch(['--await-init', '--', 'sh', '-c', 'echo "hello $GREETING"; exec sleep 1000']);
    await program.logged('listening');
    expect((await program.call('GET', '/api/v1/sandbox')).data.state).toBe('awaiting_init');
    const body = {
      sandbox_id: 'sb-9',
      team_id: 'team-9',
      webhook: { url: consumer.url, secret: SECRET },
      env: { GREETING: 'pool' },
    };
    expect((await program.call('POST', '/api/v1/sandbox/init', body)).status).toBe(200);
    expect((await program.call('POST', '/api/v1/sandbox/init', body)).status).toBe(200);
    const other = { ...body, team_id: 'another' };
    expect((await program.call('POST', '/api/v1/sandbox/init', other)).status).toBe(409);
    await consumer.arrival('sandbox.ready');
    await eventually(() => expect(program.stdout).toBe('hello pool\n'));
    expect(consumer.types.toSorted()).toEqual(['process.started', 'sandbox.ready']);
    expect(consumer.unsigned(SECRET)).toEqual([]);
  });
});

describe('an endpoint that is down', () => {
  it('is logged when its backoff begins and when it ends, and named by /readyz meanwhile', async () => {
    const consumer = await startConsumer();
    consumer.answer = (_, response) => response.writeHead(503).end();
    const program = await startSandboxd(['--webhook-url', `${consumer.url}?key=a-secret`]);
    for (let i = 0; i < 5; i++) await program.publish('{}');
    const endpoint = new URL(consumer.url).origin;
    expect(await program.logged('the endpoint is in backoff')).toMatchObject({ endpoint, status: 503 });
    const ready = await fetch(`${program.url}/readyz`);
    const { data } = (await ready.json()) as { data: { degraded: string[] } };
    expect([ready.status, data.degraded]).toEqual([
      200,
      [expect.stringMatching(/^the webhook endpoint is in backoff/)],
    ]);
    consumer.answer = (_, response) => response.writeHead(204).end();
    expect(await program.logged('the endpoint has recovered')).toMatchObject({ endpoint });
    const after = (await (await fetch(`${program.url}/readyz`)).json()) as { data: { degraded?: string[] } };
    expect(after.data.degraded ?? []).toEqual([]);
    expect(program.stderr).not.toContain('a-secret');
  });
});
