import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pack } from 'tar-stream';
import { onTestFinished } from 'vitest';
import WebSocket from 'ws';
import { FILE_SYNC_TIMEOUT_MS } from '../../../src/contract/defaults.ts';
import type { Answer } from '../../faults/support/ask.ts';
import { runSync } from '../run-sync.ts';
import { at, atOnce, call, PATIENCE_MS, type Place, type Scene, type Stage } from './place.ts';

/** A route of files at a path on the mount, by the daemon's own account or another. */
function files(name: string, method: string, route: string, path: string, more: Partial<Place> = {}): Place {
  return {
    name,
    touch: (scene) => atOnce(scene, method, `/files${route}${at(`${scene.mount.path}${path}`)}`),
    ...more,
  };
}

/** A folder that holds the mount, beside a file of its own. */
function around({ folder, mount }: Stage): string {
  const path = join(folder, 'around');
  mkdirSync(join(path, 'mounted'), { recursive: true });
  writeFileSync(join(path, 'file'), 'content');
  runSync('mount', '--bind', mount.path, join(path, 'mounted'));
  onTestFinished(() => void runSync('umount', '--lazy', join(path, 'mounted')));
  return path;
}

const pair = (source: (scene: Scene) => string, destination: (scene: Scene) => string) => ({
  move: (scene: Scene) =>
    atOnce(scene, 'POST', '/files/move', { source: source(scene), destination: destination(scene) }),
  copy: (scene: Scene) =>
    atOnce(scene, 'POST', '/files/copy', { source: source(scene), destination: destination(scene) }),
});
const outward = pair(
  ({ mount }) => join(mount.path, 'dir'),
  ({ folder }) => join(folder, 'copied'),
);
const inward = pair(
  ({ folder }) => join(folder, 'source'),
  ({ mount }) => join(mount.path, 'dir/copied'),
);
const source = async ({ folder }: Scene) => writeFileSync(join(folder, 'source'), 'content');

/** Every file route. */
export const FILE_PLACES: Place[] = [
  files('stat', 'GET', '/stat?', '/file'),
  files('stat, by another account', 'GET', '/stat?user=nobody&', '/file'),
  {
    name: 'stat behind a link',
    prepare: async ({ folder, mount }) => symlinkSync(join(mount.path, 'dir'), join(folder, 'link')),
    touch: (scene) => atOnce(scene, 'GET', `/files/stat?${at(join(scene.folder, 'link/file'))}`),
  },
  files('list', 'GET', '/list?', '/dir'),
  {
    name: 'list of a tree that holds the mount',
    prepare: async (scene) => void around(scene),
    touch: (scene) => atOnce(scene, 'GET', `/files/list?depth=3&${at(join(scene.folder, 'around'))}`),
    answers: [200, 503],
  },
  files('download', 'GET', '?', '/file'),
  files('download, by another account', 'GET', '?user=nobody&', '/file'),
  {
    name: 'download that has begun',
    touch: (scene) => [
      call(scene, 'GET', `/files?${at(join(scene.mount.path, 'file'))}`, { headers: { range: 'bytes=0-2' } }),
    ],
  },
  {
    name: 'upload target',
    touch: (scene) => atOnce(scene, 'PUT', `/files?${at(join(scene.mount.path, 'file'))}`, 'content'),
  },
  {
    name: 'upload parent',
    touch: (scene) =>
      atOnce(scene, 'PUT', (n) => `/files?${at(join(scene.mount.path, `new${n}/dir/file`))}`, 'content'),
  },
  {
    name: 'upload target behind a link',
    prepare: async ({ folder, mount }) => symlinkSync(join(mount.path, 'file'), join(folder, 'link')),
    touch: (scene) => atOnce(scene, 'PUT', `/files?${at(join(scene.folder, 'link'))}`, 'content'),
  },
  files('archive that is read', 'GET', '/archive?', '/dir'),
  {
    name: 'archive of a tree that holds the mount',
    prepare: async (scene) => void around(scene),
    touch: (scene) =>
      // What comes first has been sent: the connection breaks.
      atOnce(scene, 'GET', `/files/archive?${at(join(scene.folder, 'around'))}`).map(brokenOff),
    answers: [0, 200, 503],
  },
  {
    name: 'archive that is unpacked',
    touch: (scene) => {
      const tar = archive();
      return Array.from({ length: 4 }, async () =>
        call(scene, 'PUT', `/files/archive?${at(join(scene.mount.path, 'dir'))}`, {
          body: await tar,
          within_ms: PATIENCE_MS + FILE_SYNC_TIMEOUT_MS,
        }),
      );
    },
  },
  {
    name: 'mkdir',
    touch: (scene) =>
      atOnce(scene, 'POST', (n) => `/files?mkdir=true&${at(join(scene.mount.path, `dir/new${n}`))}`),
  },
  files('remove', 'DELETE', '?', '/file'),
  {
    name: 'remove of a tree that holds the mount',
    prepare: async (scene) => void around(scene),
    touch: (scene) => atOnce(scene, 'DELETE', `/files?recursive=true&${at(join(scene.folder, 'around'))}`),
    answers: [409, 503],
  },
  { name: 'move, from the mount', touch: outward.move },
  { name: 'move, into the mount', prepare: source, touch: inward.move },
  { name: 'copy, from the mount', touch: outward.copy },
  { name: 'copy, into the mount', prepare: source, touch: inward.copy },
  {
    name: 'watch of a client',
    touch: (scene) => [subscribed(scene, scene.mount.path), subscribed(scene, join(scene.mount.path, 'dir'))],
    answers: [0, 101],
  },
  {
    name: 'watch of a client that has begun',
    prepare: (scene) => subscribed(scene, join(scene.mount.path, 'dir')),
  },
];

/** A broken connection as the status 0. */
async function brokenOff(answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    if (/no answer/.test((error as Error).message)) throw error;
    return { status: 0, headers: {}, text: '', json: null };
  }
}

async function archive(): Promise<Buffer> {
  const tar = pack();
  tar.entry({ name: 'a/file' }, 'content');
  tar.entry({ name: 'b' }, 'content');
  tar.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of tar) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

/** Subscribes; 101 once the daemon has said something of it, 0 where it says nothing for a while. */
async function subscribed({ daemon }: Scene, path: string): Promise<Answer> {
  const socket = new WebSocket(`${daemon.url.replace('http', 'ws')}/api/v1/files/watch`, {
    headers: { authorization: `Bearer ${daemon.token}` },
  });
  onTestFinished(() => socket.terminate());
  socket.on('error', () => {});
  const said = new Promise<number>((resolve) => {
    socket.once('open', () => socket.send(JSON.stringify({ action: 'subscribe', path, recursive: true })));
    socket.once('message', () => resolve(101));
    socket.once('close', () => resolve(0));
    setTimeout(() => resolve(0), 5_000).unref();
  });
  return { status: await said, headers: {}, text: '', json: null };
}
