import { Messages } from '../../../bench/support/messages.ts';
import type { Behaviours } from '../behaviour.ts';
import { type HostileClient, JSON_TYPE, PUBLISH } from '../hostile-client.ts';

const BODY_MAX = 2 ** 20;
const ENVELOPE = '{"payload":}'.length;
/** Longer than a request may take. */
const HOLD_MS = 20_000;

/** What needs no token: publishes, whole and broken, fast and slow. */
export const PUBLISHING: Behaviours = {
  'small publishes, one after the other': async (client) => {
    for (let i = 0; i < 50 && !client.is_over; i++) await client.publish(client.payload(60));
  },

  'publishes of all sizes': async (client) => {
    for (let i = 0; i < 10 && !client.is_over; i++)
      await client.publish(client.payload(client.size(40, BODY_MAX - ENVELOPE)));
  },

  'the largest publishes, three at a time': async (client) => {
    await Promise.all(Array.from({ length: 3 }, () => client.publish(client.payload(BODY_MAX - ENVELOPE))));
  },

  'publishes that are no good': async (client) => {
    const bodies = [
      ...['', '{', '[]', '{"payload":1}', '{"payload":{},"more":1}', '{"payload":{"a":}}', '\0', '\xff'],
      `{"payload":${'{"a":'.repeat(200)}1${'}'.repeat(200)}}`,
      `{"payload":${'['.repeat(100_000)}`,
      `{"payload":${client.payload(BODY_MAX)}}`,
      `{"payload":${client.payload(3 * BODY_MAX)}}`,
    ];
    for (const body of bodies) {
      const answer = await client.ask('POST', PUBLISH, { body, is_open: true, headers: JSON_TYPE });
      if (answer && answer.status < 400) client.notes.defect(`${answer.status} for ${body.slice(0, 40)}`);
    }
  },

  'keys that repeat': async (client) => {
    const headers = { 'idempotency-key': `key-${client.number}-${client.random.below(1e9)}` };
    const payload = client.payload(client.size(40, 100_000));
    const first = await client.publish(payload, headers);
    const again = await client.publish(payload, headers);
    const ids = [first, again].map((answer) => client.data(answer)?.event_id);
    if (ids[0] && ids[1] && ids[0] !== ids[1]) client.notes.defect(`one key, two events: ${ids.join(', ')}`);
    const other = await client.ask('POST', PUBLISH, {
      ...{ body: '{"payload":{"other":true}}', is_open: true, headers: { ...JSON_TYPE, ...headers } },
    });
    if (ids[0] && other?.status === 202) client.notes.defect('one key, two payloads');
  },

  'bodies that stop a byte short': async (client) => {
    const length = client.random.chance(0.7) ? BODY_MAX : client.size(10, BODY_MAX);
    const socket = await client.connect();
    socket.resume();
    socket.write(client.head('POST', PUBLISH, { ...JSON_TYPE, 'content-length': length }));
    socket.write(Buffer.alloc(length - 1, ' '));
    await client.held(socket, HOLD_MS);
  },

  'bodies that drip': async (client) => {
    const socket = await client.connect();
    socket.resume();
    socket.write(client.head('POST', PUBLISH, { ...JSON_TYPE, 'content-length': BODY_MAX }));
    await dripped(client, () => socket.writable && socket.write(' '.repeat(client.size(1, 50_000))));
    socket.destroy();
  },

  'headers that drip': async (client) => {
    const socket = await client.connect();
    socket.resume();
    socket.write(`POST ${PUBLISH} HTTP/1.1\r\nHost: localhost\r\n`);
    await dripped(client, () => socket.writable && socket.write(`X-${client.random.below(9)}: b\r\n`));
    socket.destroy();
  },

  'connections that say nothing': async (client) => {
    const sockets = await Promise.all([client.connect(), client.connect(), client.connect()]);
    for (const socket of sockets) socket.resume();
    await Promise.all(sockets.map((socket) => client.held(socket, client.size(10, HOLD_MS))));
  },

  'connections that come and go': async (client) => {
    for (let i = 0; i < 30 && !client.is_over; i++) (await client.connect()).destroy();
  },

  'a pipeline of publishes whose answers are read': async (client) => {
    const payloads = Array.from({ length: client.size(2, 2_000) }, () =>
      client.payload(client.size(30, 400)),
    );
    const socket = await client.connect();
    // Answers come in the order of the requests, as far as they come.
    let answered = 0;
    const messages = new Messages((head, body) => {
      const status = Number(head.slice(9, 12));
      const payload = payloads[answered++] ?? '';
      client.notes.answer(client.behaviour, PUBLISH, {
        ...{ status, text: body.toString() },
        headers: /^retry-after:/im.test(head) ? { 'retry-after': '' } : {},
      });
      if (status === 202) client.acknowledge(body.toString(), payload);
    });
    socket.on('data', (chunk) => messages.push(chunk));
    for (const payload of payloads) socket.write(publish(client, payload));
    await client.held(socket, 3_000);
  },

  'a pipeline of publishes without end that reads nothing': async (client) => {
    const socket = await client.connect();
    const bytes = Buffer.from(publish(client, '{"a":"x"}').repeat(5_000));
    await flooded(client, socket, bytes, 20);
  },

  'a pipeline of anything': async (client) => {
    const socket = await client.connect();
    const paths = [
      '/metrics',
      '/openapi.json',
      '/healthz',
      '/api/v1/processes',
      '/api/v1/webhook/deliveries',
    ];
    const one = client.head('GET', client.random.pick(paths));
    await flooded(client, socket, Buffer.from(one.repeat(2_000)), 5);
  },

  'a half-closed connection': async (client) => {
    const socket = await client.connect();
    const payload = client.payload(client.size(40, 10_000));
    const messages = new Messages((head, body) => {
      client.notes.count(client.behaviour, head.slice(9, 12));
      if (head.startsWith('202', 9)) client.acknowledge(body.toString(), payload);
    });
    socket.on('data', (chunk) => messages.push(chunk));
    socket.end(publish(client, payload));
    await client.held(socket, 5_000);
  },
};

function publish(client: HostileClient, payload: string): string {
  const length = Buffer.byteLength(payload) + ENVELOPE;
  return `${client.head('POST', PUBLISH, { ...JSON_TYPE, 'content-length': length })}{"payload":${payload}}`;
}

/** Something every now and then, until the other side has enough. */
async function dripped(client: HostileClient, drop: () => unknown): Promise<void> {
  for (let i = 0; i < 40 && !client.is_over && drop(); i++) await client.pause(500);
  client.notes.count(client.behaviour, 'dripped');
}

/** Writes the same again and again as far as it is taken, reads nothing, and goes away. */
async function flooded(
  client: HostileClient,
  socket: Awaited<ReturnType<HostileClient['connect']>>,
  bytes: Buffer,
  times: number,
): Promise<void> {
  const drained = () =>
    new Promise<void>((resolve) => {
      socket.once('drain', resolve);
      socket.once('close', () => resolve());
    });
  for (let i = 0; i < times && !client.is_over && socket.writable; i++) {
    if (!socket.write(bytes)) await Promise.race([drained(), client.pause(3_000)]);
    if (socket.writableNeedDrain) break;
  }
  await client.held(socket, 3_000);
}
