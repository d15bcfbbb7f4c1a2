import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import WebSocket from 'ws';
import { type Answer, ask } from '../../faults/support/ask.ts';
import { eventually } from '../eventually.ts';
import { at, call, dataOf, PATIENCE_MS, type Place, type Scene } from './place.ts';

/** Something that does not lie on the mount; throws where it does not go on. */
type Check = (scene: Scene) => Promise<unknown>;

/** Everything that goes on beside a file system that hangs. */
const CHECKS: Record<string, Check> = {
  health: (scene) => root(scene, '/healthz'),
  readiness: (scene) => root(scene, '/readyz'),
  metrics: (scene) => root(scene, '/metrics'),
  sandbox: (scene) => expectStatus(call(scene, 'GET', '/sandbox'), 200),
  'list of processes': (scene) => expectStatus(call(scene, 'GET', '/processes'), 200),
  'publish and delivery': async (scene) => {
    const body = { payload: { is: 'honest' } };
    const answer = await expectStatus(call(scene, 'POST', '/webhook/publish', { body }), 202);
    const event_id = String(dataOf(answer).event_id);
    await eventually(
      () => {
        if (!scene.consumer.find(event_id)) throw new Error('it is not delivered');
      },
      { timeout: PATIENCE_MS, interval: 20 },
    );
  },
};

/** What is done as an account. */
const AS_ACCOUNT: Record<string, Check> = {
  stat: (scene) => expectStatus(call(scene, 'GET', `/files/stat?${at(scene.folder)}`), 200),
  list: (scene) => expectStatus(call(scene, 'GET', '/files/list?path=/usr'), 200),
  archive: async (scene) => {
    const path = join(scene.folder, 'packed');
    await expectStatus(call(scene, 'PUT', `/files?${at(join(path, 'file'))}`, { body: 'content' }), 200);
    await expectStatus(call(scene, 'GET', `/files/archive?${at(path)}`), 200);
  },
  'upload and download': async (scene) => {
    const path = join(scene.folder, 'uploaded');
    await expectStatus(call(scene, 'PUT', `/files?${at(path)}`, { body: 'content' }), 200);
    const { text } = await expectStatus(call(scene, 'GET', `/files?${at(path)}`), 200);
    if (text !== 'content') throw new Error(`it holds ${text}`);
  },
  'process start': async (scene) => {
    const body = { command: ['sh', '-c', 'exit 7'], cwd: '/' };
    const answer = await expectStatus(call(scene, 'POST', '/processes?wait_ms=20000', { body }), 201);
    const { exit_code } = dataOf(answer);
    if (exit_code !== 7) throw new Error(`its exit code is ${exit_code}`);
  },
  watch: (scene) => told(scene, scene.folder),
};

const PAUSE: Check = async (scene) => {
  await expectStatus(call(scene, 'POST', '/sandbox/pause', { body: {} }), 200);
  await expectStatus(call(scene, 'POST', '/sandbox/resume', { body: {} }), 200);
};

/** What does not go on: a line each. */
export async function failedChecks(
  scene: Scene,
  { is_account = false }: Pick<Place, 'is_account'>,
): Promise<string[]> {
  const checks = { ...CHECKS, ...(is_account ? {} : AS_ACCOUNT) };
  const failures = await Promise.all(
    Object.entries(checks).map(([name, check]) => failure(name, check, scene)),
  );
  return failures.flat();
}

/** What a pause and a resume do not do: a line each. */
export function failedPause(scene: Scene): Promise<string[]> {
  return failure('pause and resume', PAUSE, scene);
}

async function failure(name: string, check: Check, scene: Scene): Promise<string[]> {
  try {
    await check(scene);
    return [];
  } catch (error) {
    return [`${name}: ${(error as Error).message}`];
  }
}

function root({ daemon }: Scene, path: string): Promise<Answer> {
  return expectStatus(ask(`${daemon.url}${path}`, { within_ms: PATIENCE_MS }), 200);
}

async function expectStatus(asked: Promise<Answer>, ...wanted: number[]): Promise<Answer> {
  const answer = await asked;
  if (!wanted.includes(answer.status)) throw new Error(`${answer.status} ${answer.text}`);
  return answer;
}

/** A watch of another folder tells of a change. */
function told({ daemon }: Scene, folder: string): Promise<void> {
  const socket = new WebSocket(`${daemon.url.replace('http', 'ws')}/api/v1/files/watch`, {
    headers: { authorization: `Bearer ${daemon.token}` },
  });
  return new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error('no event')), PATIENCE_MS);
    const end = (act: () => void) => {
      clearTimeout(late);
      socket.terminate();
      act();
    };
    socket.on('error', (error) => end(() => reject(error)));
    socket.once('open', () =>
      socket.send(JSON.stringify({ action: 'subscribe', path: folder, recursive: false })),
    );
    socket.on('message', (data) => {
      const { type } = JSON.parse(String(data)) as { type: string };
      if (type === 'subscribed') writeFileSync(join(folder, 'changed'), '');
      if (type === 'event') end(resolve);
      if (type === 'error') end(() => reject(new Error(String(data))));
    });
  });
}
