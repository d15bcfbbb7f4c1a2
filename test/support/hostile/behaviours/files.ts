import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import type { Behaviours } from '../behaviour.ts';
import type { HostileClient } from '../hostile-client.ts';
import { overWebSocket } from './processes.ts';

const FILES = '/api/v1/files';
/** A tree that every system has, with some thousand entries. */
const LARGE_TREE = '/usr/share';

/** Files of all sizes, whole and broken off, and trees. */
export const FILES_AND_TREES: Behaviours = {
  'uploads and downloads': async (client) => {
    const at = place(client, 'file');
    await client.ask('PUT', `${FILES}?${at}`, { body: Buffer.alloc(client.size(1, 8e6), 'f') });
    await client.ask('GET', `${FILES}?${at}`);
    await client.ask('GET', `${FILES}?${at}`, { headers: { range: 'bytes=-100' } });
    await client.ask('HEAD', `${FILES}?${at}`);
    await client.ask('DELETE', `${FILES}?${at}`);
  },

  'uploads that break off': async (client) => {
    const at = place(client, 'broken');
    await client.ask('PUT', `${FILES}?${at}`, {
      body: dripping(client),
      leaves_after_ms: client.size(100, 10_000),
    });
  },

  'downloads that are not read': async (client) => {
    const at = place(client, 'unread');
    await client.ask('PUT', `${FILES}?${at}`, { body: Buffer.alloc(4e6) });
    const sockets = await Promise.all([client.connect(), client.connect(), client.connect()]);
    for (const socket of sockets) socket.write(client.head('GET', `${FILES}?${at}`));
    await Promise.all(sockets.map((socket) => client.held(socket, client.size(500, 20_000))));
  },

  'looks at many files': async (client) => {
    for (const path of [
      '/',
      '/etc/passwd',
      '/proc/self',
      client.path('none'),
      'relative',
      '/dev/zero',
      '/proc/1/root',
    ])
      for (const route of ['stat', 'list'])
        await client.ask('GET', `${FILES}/${route}?path=${encodeURIComponent(path)}`);
  },

  'long lists': async (client) => {
    for (let i = 0, cursor = ''; i < 4 && !client.is_over; i++) {
      const page = `${FILES}/list?path=${LARGE_TREE}&depth=${1 + client.random.below(32)}&limit=10000${cursor}`;
      const answer = await client.ask('GET', page, client.random.chance(0.3) ? { leaves_after_ms: 200 } : {});
      const next = /"next_cursor":"([^"]+)"/.exec(answer?.text ?? '')?.[1];
      if (next === undefined) return;
      cursor = `&cursor=${encodeURIComponent(next)}`;
    }
  },

  'archives that are read in part': async (client) => {
    const format = client.random.pick(['tar', 'tar.gz']);
    await client.ask('GET', `${FILES}/archive?path=${LARGE_TREE}&format=${format}`, {
      ...{ reads_bytes: client.size(1_000, 2e7), leaves_after_ms: 5_000 },
    });
    const socket = await client.connect();
    socket.write(client.head('GET', `${FILES}/archive?path=${LARGE_TREE}`));
    await client.held(socket, client.size(100, 5_000));
  },

  'archives that are unpacked': async (client) => {
    const at = place(client, 'tree');
    const body = await archive(client);
    await client.ask('PUT', `${FILES}/archive?${at}`, { body });
    await client.ask('PUT', `${FILES}/archive?${at}`, { body: body.subarray(0, body.length / 2) });
    await client.ask('PUT', `${FILES}/archive?${at}`, { body: gzipSync(Buffer.alloc(1e7)) });
    await client.ask('PUT', `${FILES}/archive?${at}`, { body: client.random.bytes(2_000) });
    await client.ask('DELETE', `${FILES}?${at}&recursive=true`);
  },

  'moves, copies and removals': async (client) => {
    const [one, two] = ['one', 'two'].map((name) => client.path(name)) as [string, string];
    await client.ask('POST', `${FILES}?mkdir=true&recursive=true&path=${encodeURIComponent(`${one}/a/b/c`)}`);
    await client.ask('PUT', `${FILES}?path=${encodeURIComponent(`${one}/a/file`)}`, { body: 'file' });
    await client.post(`${FILES}/copy`, { source: one, destination: two });
    await client.post(`${FILES}/move`, { source: two, destination: `${one}/two` });
    await client.post(`${FILES}/move`, { source: one, destination: `${one}/a` });
    await client.ask('DELETE', `${FILES}?path=${encodeURIComponent(one)}`);
    await client.ask('DELETE', `${FILES}?path=${encodeURIComponent(one)}&recursive=true`);
  },

  'watches, read and not read': async (client) => {
    const folder = client.site.folder;
    await overWebSocket(client, `${FILES}/watch`, (socket) => {
      const path = client.random.pick([folder, '/tmp', client.path('none'), '/etc', '/proc']);
      socket.send(JSON.stringify({ action: 'subscribe', path, recursive: client.random.chance(0.2) }));
      socket.send(client.random.pick(['{"action":"unsubscribe","watch_id":"1"}', '{', '[]', '{"action":1}']));
    });
  },

  'changes in what is watched': async (client) => {
    const shell = `mkdir -p ${client.path('burst')}; cd ${client.path('burst')}; for i in $(seq 300); do : >$i; done; rm -r ${client.path('burst')}`;
    await client.post('/api/v1/processes?wait_ms=5000', { shell });
  },
};

function place(client: HostileClient, name: string): string {
  return `path=${encodeURIComponent(client.path(name))}`;
}

async function* dripping(client: HostileClient): AsyncIterable<Buffer> {
  for (let i = 0; i < 1_000 && !client.is_over; i++) {
    yield Buffer.alloc(client.size(1, 100_000), 'd');
    await client.pause(client.size(1, 300));
  }
}

/** Files, links, and a name with many levels. */
async function archive(client: HostileClient): Promise<Buffer> {
  const tar = pack();
  const count = client.size(1, 400);
  for (let i = 0; i < count; i++) {
    const kind = client.random.below(4);
    const name = `${'d/'.repeat(client.random.below(6))}f${i}`;
    if (kind === 0) tar.entry({ name: `${name}/`, type: 'directory' });
    else if (kind === 1)
      tar.entry({ name, type: 'symlink', linkname: client.random.chance(0.01) ? '/etc' : 'x' });
    else tar.entry({ name }, 'y'.repeat(client.size(1, 5_000)));
  }
  if (client.random.chance(0.3)) tar.entry({ name: `${'d/'.repeat(client.size(10, 300))}deep` }, 'deep');
  tar.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of tar) pieces.push(piece as Buffer);
  const bytes = Buffer.concat(pieces);
  return client.random.chance(0.5) ? gzipSync(bytes) : bytes;
}
