import type { Behaviours } from '../behaviour.ts';

const DELIVERIES = '/api/v1/webhook/deliveries';

/** Large answers, read slowly or never. */
export const READING: Behaviours = {
  'metrics, documents and health': async (client) => {
    for (let i = 0; i < 10 && !client.is_over; i++)
      for (const path of ['/metrics', '/openapi.json', '/readyz', '/healthz'])
        await client.ask('GET', path, { is_open: true });
  },

  'answers that are never read': async (client) => {
    const paths = [
      '/openapi.json',
      '/metrics',
      `${DELIVERIES}?limit=1000`,
      '/api/v1/processes',
      '/api/v1/contexts',
    ];
    const sockets = await Promise.all([client.connect(), client.connect(), client.connect()]);
    for (const socket of sockets) socket.write(client.head('GET', client.random.pick(paths)));
    await Promise.all(sockets.map((socket) => client.held(socket, 5_000)));
  },

  'odd requests': async (client) => {
    const paths = [
      '/',
      '/api/v1/nowhere',
      `${DELIVERIES}?limit=-1`,
      `${DELIVERIES}?cursor=%00`,
      '/api/v1/webhook',
    ];
    for (const path of paths)
      for (const method of ['GET', 'PATCH', 'OPTIONS', 'HEAD']) await client.ask(method, path);
    await client.ask('GET', '/healthz', { headers: { 'x-large': 'x'.repeat(20_000) } });
    await client.ask('POST', '/api/v1/processes', { is_open: true, body: '{}' });
  },

  'pages of deliveries': async (client) => {
    let cursor = '';
    for (let i = 0; i < 20 && !client.is_over; i++) {
      const answer = await client.ask(
        'GET',
        `${DELIVERIES}?limit=${client.random.pick([1, 100, 1_000])}${cursor}`,
      );
      const data = client.data(answer);
      if (!data?.next_cursor) return;
      cursor = `&cursor=${encodeURIComponent(data.next_cursor)}`;
    }
  },

  'single deliveries, sent again': async (client) => {
    const page = client.data(await client.ask('GET', `${DELIVERIES}?limit=50`));
    for (const { event_id } of page?.deliveries ?? []) {
      if (client.is_over) return;
      await client.ask('GET', `${DELIVERIES}/${event_id}`);
      if (client.random.chance(0.3)) await client.ask('POST', `${DELIVERIES}/${event_id}/replay`);
    }
  },

  'everything sent again': async (client) => {
    for (const state of ['failed', 'expired', client.random.chance(0.2) ? 'delivered' : 'failed'])
      await client.ask('POST', `${DELIVERIES}/replay?state=${state}`);
    await client.pause(1_000);
  },

  'tests of the webhook': async (client) => {
    await client.ask('POST', '/api/v1/webhook/test', { leaves_after_ms: client.size(10, 3_000) });
  },

  'followers of all events that read': async (client) => {
    await client.ask('GET', '/api/v1/events/stream', {
      ...{ headers: { 'last-event-id': '0' }, leaves_after_ms: 3_000, reads_bytes: 20 * 2 ** 20 },
    });
  },

  'followers of all events that do not read': async (client) => {
    const sockets = await Promise.all([client.connect(), client.connect()]);
    for (const socket of sockets)
      socket.write(client.head('GET', '/api/v1/events/stream', { 'last-event-id': '0' }));
    await Promise.all(sockets.map((socket) => client.held(socket, client.size(1_000, 20_000))));
  },

  'what the sandbox is': async (client) => {
    for (let i = 0; i < 20 && !client.is_over; i++) await client.ask('GET', '/api/v1/sandbox');
    const env = { [`HOSTILE_${client.number}`]: 'x'.repeat(client.size(1, 20_000)) };
    await client.ask('PUT', '/api/v1/sandbox/env', {
      ...{ body: JSON.stringify({ env }), headers: { 'content-type': 'application/json' } },
    });
    await client.ask('PUT', '/api/v1/sandbox/env', {
      ...{ body: JSON.stringify({ env: { [`HOSTILE_${client.number}`]: null } }) },
      headers: { 'content-type': 'application/json' },
    });
  },
};
