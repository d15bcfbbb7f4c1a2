import WebSocket from 'ws';
import type { Behaviours } from '../behaviour.ts';
import type { HostileClient } from '../hostile-client.ts';

const PROCESSES = '/api/v1/processes';
const CONTEXTS = '/api/v1/contexts';
/** One argument's largest length in bytes. */
const ARGUMENT_MAX = 131_071;

/** Processes: many, large, noisy, followed and fed. */
export const PROCESSES_AND_CONTEXTS: Behaviours = {
  'many small processes': async (client) => {
    for (let i = 0; i < 15 && !client.is_over; i++) await client.post(PROCESSES, { command: ['true'] });
    await client.post(`${PROCESSES}?wait_ms=2000`, { shell: 'echo out; echo err >&2' });
  },

  'starts that fail': async (client) => {
    const cwds = ['/nowhere', '/etc/passwd', client.path('none')];
    for (const cwd of cwds) await client.post(PROCESSES, { command: ['true'], cwd });
    for (const command of [['no-such-program'], ['/etc/passwd'], [''], [], ['/']])
      await client.post(PROCESSES, { command });
    await client.post(PROCESSES, { command: ['true'], user: 'nobody-at-all' });
    await client.post(PROCESSES, { command: ['true'], process_id: '../../x' });
  },

  'starts with a large environment': async (client) => {
    const env = Object.fromEntries(
      Array.from({ length: client.size(10, 8_000) }, (_, i) => [`A${i}`, 'x'.repeat(100)]),
    );
    for (let i = 0; i < 4 && !client.is_over; i++)
      await client.post(`${PROCESSES}?wait_ms=2000`, { command: ['true'], env });
  },

  'starts with large arguments': async (client) => {
    const command = [
      'true',
      ...Array.from({ length: client.random.below(8) }, () => 'y'.repeat(ARGUMENT_MAX - 1_000)),
    ];
    for (let i = 0; i < 4 && !client.is_over; i++)
      await client.post(`${PROCESSES}?wait_ms=2000`, { command });
  },

  'large processes that stay': async (client) => {
    const env = Object.fromEntries(Array.from({ length: 4_096 }, (_, i) => [`A${i}`, 'x'.repeat(200)]));
    const started = [];
    for (let i = 0; i < 4 && !client.is_over; i++)
      started.push(client.data(await client.post(PROCESSES, { command: ['sleep', '15'], env })));
    await client.pause(client.size(100, 5_000));
    for (const process of started) if (process) await ended(client, process.process_id);
  },

  'lists and views of processes': async (client) => {
    const list = client.data(await client.ask('GET', PROCESSES));
    await client.ask('GET', CONTEXTS);
    for (const { process_id } of (list?.processes ?? []).slice(-10)) {
      if (client.is_over) return;
      await client.ask('GET', `${PROCESSES}/${process_id}`);
      await client.ask('GET', `${CONTEXTS}/${process_id}`);
      await client.ask('GET', `${PROCESSES}/${process_id}/output?tail_lines=5`);
      await client.ask('GET', `${PROCESSES}/${process_id}/wait?timeout_ms=50`);
    }
  },

  'a flood of output that nobody follows': async (client) => {
    const noise = client.random.pick(['yes', 'cat /dev/zero', 'while :; do echo x; done', 'od /dev/urandom']);
    const process = client.data(
      await client.post(PROCESSES, { shell: `(${noise}) | head -c ${client.size(1e4, 2e7)}` }),
    );
    if (!process) return;
    await client.ask('GET', `${PROCESSES}/${process.process_id}/wait?timeout_ms=3000`, {
      leaves_after_ms: 3_000,
    });
    await client.ask('GET', `${PROCESSES}/${process.process_id}/output`);
  },

  'a flood of output with followers of all kinds': async (client) => {
    const process = client.data(
      await client.post(`${PROCESSES}?lossless=true`, {
        shell: `head -c ${client.size(1e6, 3e7)} /dev/zero; yes | head -c 1000000 >&2`,
      }),
    );
    if (!process) return;
    const output = `${PROCESSES}/${process.process_id}/output?follow=true`;
    const unread = await client.connect();
    unread.write(client.head('GET', `${output}&lossless=${client.random.chance(0.5)}`));
    const raw = { headers: { accept: 'application/octet-stream' }, leaves_after_ms: 4_000 };
    await Promise.all([
      client.ask('GET', `${output}&lossless=true&stream=stdout`, raw),
      client.ask('GET', output, { leaves_after_ms: client.size(100, 4_000) }),
      client.held(unread, 4_000),
    ]);
    await ended(client, process.process_id);
  },

  'stdin, taken and not taken': async (client) => {
    const command = client.random.pick([['cat'], ['sleep', '20'], ['head', '-c', '100000']]);
    const process = client.data(await client.post(PROCESSES, { command, stdin: 'pipe' }));
    if (!process) return;
    const at = `${PROCESSES}/${process.process_id}`;
    const body = Buffer.alloc(client.size(1, 5e6), 'i');
    await client.ask('POST', `${at}/stdin`, { body, leaves_after_ms: client.size(100, 3_000) });
    await client.ask('POST', `${at}/stdin?end=true`, { body: 'end', leaves_after_ms: 1_000 });
    await client.post(`${at}/signal`, {
      signal: client.random.pick(['SIGSTOP', 'SIGUSR1', 'SIGTERM', 'SIGWHAT']),
    });
    await ended(client, process.process_id);
  },

  'attached clients': async (client) => {
    const shell = 'while read line; do echo "$line"; yes | head -c 100000; done';
    const process = client.data(await client.post(PROCESSES, { shell, stdin: 'pipe' }));
    if (!process) return;
    const path = `${PROCESSES}/${process.process_id}/attach?lossless=${client.random.chance(0.5)}`;
    const is_good = client.random.chance(0.7);
    await overWebSocket(client, path, (socket) => {
      const frame = is_good
        ? { type: 'stdin', data: `${'x'.repeat(client.size(1, 60_000))}\n` }
        : { type: 'what' };
      socket.send(JSON.stringify(frame));
    });
    await ended(client, process.process_id);
  },

  terminals: async (client) => {
    const pty = { cols: 80, rows: 24 };
    const process = client.data(await client.post(PROCESSES, { command: ['sh'], pty }));
    if (!process) return;
    const at = `${PROCESSES}/${process.process_id}`;
    await client.ask('POST', `${at}/stdin`, { body: 'yes | head -c 3000000\n', leaves_after_ms: 2_000 });
    for (let i = 0; i < 10; i++) await client.post(`${at}/resize`, { cols: 10 + i, rows: 5 });
    await client.ask('GET', `${at}/output?tail_bytes=100000`);
    await ended(client, process.process_id);
  },

  'restarts without end': async (client) => {
    const process = client.data(
      await client.post(PROCESSES, { command: ['false'], restart: { policy: 'always', backoff_ms: 0 } }),
    );
    await client.pause(2_000);
    if (process) await ended(client, process.process_id);
  },

  contexts: async (client) => {
    const made = client.data(await client.post(CONTEXTS, { type: 'cmd', cmd: { command: ['cat'] } }));
    if (!made) return;
    const at = `${CONTEXTS}/${made.id}`;
    await client.post(
      `${at}/input`,
      { data: 'x'.repeat(client.size(1, 900_000)) },
      { leaves_after_ms: 2_000 },
    );
    await client.ask('GET', at);
    await overWebSocket(client, `${at}/ws`, (socket) =>
      socket.send(JSON.stringify({ type: 'input', data: 'y'.repeat(client.size(1, 10_000)) })),
    );
    await client.ask('POST', `${at}/restart`, { leaves_after_ms: 5_000 });
    await client.ask('DELETE', at, { leaves_after_ms: 5_000 });
  },
};

async function ended(client: HostileClient, process_id: string): Promise<void> {
  await client.ask('DELETE', `${PROCESSES}/${process_id}?grace_ms=0`);
}

/** Sends frames for a while; reads for half of the time, and then no more. */
export async function overWebSocket(
  client: HostileClient,
  path: string,
  send: (socket: WebSocket) => void,
): Promise<void> {
  const { port, token } = client.site;
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  let is_gone = false;
  socket.on('error', () => {});
  const leave = () => socket.terminate();
  client.over.addEventListener('abort', leave, { once: true });
  const opened = new Promise<void>((resolve) => {
    socket.once('open', resolve);
    socket.once('close', (code) => {
      is_gone = true;
      client.notes.count(client.behaviour, `closed ${code}`);
      resolve();
    });
  });
  socket.on('unexpected-response', (_request, response) => {
    client.notes.answer(client.behaviour, path, {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text: '',
    });
    socket.terminate();
  });
  await opened;
  for (let i = 0; i < 20 && !is_gone && !client.is_over; i++) {
    if (i === 10) socket.pause();
    if (socket.bufferedAmount < 2 ** 20) send(socket);
    await client.pause(50);
  }
  client.over.removeEventListener('abort', leave);
  socket.terminate();
}
