import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { libc } from '../../../../src/base/linux/libc.ts';
import { requestDaemon } from '../../../../src/runtime/control-client.ts';
import { Keeper } from '../../../../src/runtime/kubernetes/keeper/keeper.ts';
import { connectDaemon, KeeperClient } from '../../../../src/runtime/kubernetes/keeper-client.ts';
import { createDaemon, startDaemon } from '../../../support/daemon/running-daemon.ts';
import { eventually } from '../../../support/eventually.ts';
import { IS_ROOT } from '../../../support/rights.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const TRUST = { team_id: 'team_1', webhook_secret: '', record_key: 'a7'.repeat(32), sandbox_id: 'sbx-1' };

/** What the kernel marks a folder with that replaces one of the image. */
const OPAQUE = 'user.overlay.opaque';
const attributes = {
  set: libc.func(
    'int setxattr(const char *path, const char *name, const char *value, size_t size, int flags)',
  ),
  get: libc.func('long getxattr(const char *path, const char *name, _Out_ uint8_t *value, size_t size)'),
};

async function handedOver(client: KeeperClient): Promise<unknown[]> {
  const pages: unknown[] = [];
  for await (const page of client.handOver(TRUST)) pages.push(page);
  return pages;
}

/** A keeper over folders of the test's own, as in a Pod. */
async function keeperOf() {
  const folder = scratchFolder();
  const [control, volume] = [join(folder, 'control'), join(folder, 'volume')];
  for (const path of ['control/run', 'volume/work', 'volume/state'])
    mkdirSync(join(folder, path), { recursive: true });
  const key = randomBytes(32);
  const port = await new Keeper(key, { control, volume }, systemClock).start(0);
  const address = { host: '127.0.0.1', port, key };
  return { control, volume, address, client: new KeeperClient(address, systemClock) };
}

it('serves the daemon to who has the key, and takes socket and token out of the sandbox', async () => {
  const { control, address } = await keeperOf();
  // Nobody listens yet: the connection waits for the daemon.
  const asked = requestDaemon(() => connectDaemon(address, systemClock), {
    ...{ method: 'GET', path: '/sandbox', within_ms: 30_000 },
  });
  writeFileSync(join(control, 'run/control-token'), 'secret');
  await startDaemon('--control-socket', join(control, 'run/control.sock'));
  expect(await asked).toMatchObject({ outcome: 'answered', status: 200 });
  expect(['control.sock', 'control-token'].map((name) => existsSync(join(control, 'run', name)))).toEqual([
    false,
    false,
  ]);
  const stranger = { ...address, key: randomBytes(32) };
  await expect(connectDaemon(stranger, systemClock)).rejects.toThrow();
  await expect(new KeeperClient(stranger, systemClock).begin()).rejects.toMatchObject({
    code: 'internal_error',
  });
});

it('takes no pipe for the copy of an outbox', async () => {
  const [source, child] = [await keeperOf(), await keeperOf()];
  mkdirSync(join(source.volume, 'state/daemon'));
  execFileSync('mkfifo', [join(source.volume, 'state/daemon/outbox-copy.db')]);
  await expect(source.client.copyTo(child.client, false)).rejects.toMatchObject({ code: 'internal_error' });
  expect(existsSync(join(child.volume, 'state/daemon/outbox.db'))).toBe(false);
});

it('copies a volume, and follows no link of the sandbox to what is not in it', async () => {
  const [source, child] = [await keeperOf(), await keeperOf()];
  writeFileSync(join(source.volume, 'work/-file'), 'work');
  mkdirSync(join(source.volume, 'state/daemon'));
  writeFileSync(join(source.volume, 'state/daemon/outbox-copy.db'), 'outbox');
  await source.client.copyTo(child.client, false);
  const read = (path: string) => readFileSync(join(child.volume, path), 'utf8');
  expect([read('work/-file'), read('state/daemon/outbox.db')]).toEqual(['work', 'outbox']);
  await child.client.begin();
  expect(existsSync(join(child.control, 'run/begin'))).toBe(true);

  const hostile = await keeperOf();
  symlinkSync(join(source.volume, 'state/daemon'), join(hostile.volume, 'state/daemon'));
  await expect(hostile.client.copyTo((await keeperOf()).client, false)).rejects.toMatchObject({
    message: 'The source has lost its outbox.',
  });
  const pages = await handedOver(hostile.client);
  expect(pages).toEqual([
    {
      records: [],
      lost_records: 0,
      set_aside: 0,
      trouble: 'the state directory and its records are missing',
    },
  ]);
});

it('copies what a sandbox has made of its image: what it removed and replaced as well', async () => {
  const [source, child] = [await keeperOf(), await keeperOf()];
  const inSource = (path: string) => join(source.volume, 'root/upper', path);
  mkdirSync(inSource('etc/replaced'), { recursive: true });
  writeFileSync(inSource('etc/made'), 'made');
  symlinkSync('/', inSource('etc/link'));
  const run = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: 'utf8' });
  run('mkfifo', inSource('etc/pipe'));
  if (IS_ROOT) run('mknod', inSource('removed'), 'c', '0', '0');
  expect(attributes.set(inSource('etc/replaced'), OPAQUE, 'y', 1, 0)).toBe(0);
  mkdirSync(join(source.volume, 'state/daemon'));
  writeFileSync(join(source.volume, 'state/daemon/outbox-copy.db'), 'outbox');
  await source.client.copyTo(child.client, true);
  const inChild = (path: string) => join(child.volume, 'root/upper', path);
  expect(readFileSync(inChild('etc/made'), 'utf8')).toBe('made');
  expect(readlinkSync(inChild('etc/link'))).toBe('/');
  expect(lstatSync(inChild('etc/pipe')).isFIFO()).toBe(true);
  if (IS_ROOT) {
    const { rdev, ...removed } = lstatSync(inChild('removed'));
    expect([rdev, removed.mode & constants.S_IFMT]).toEqual([0, constants.S_IFCHR]);
  }
  const opaque = Buffer.alloc(8);
  expect(attributes.get(inChild('etc/replaced'), OPAQUE, opaque, opaque.length)).toBe(1);
  expect(opaque.toString('utf8', 0, 1)).toBe('y');
});

it('hands nothing over while a daemon is using the outbox', async () => {
  const { volume, client } = await keeperOf();
  const daemon = createDaemon(join(volume, 'state/daemon'), '--sandbox-id', 'sbx-1');
  onTestFinished(() => daemon.stop('signal', 'SIGTERM'));
  await daemon.start();
  await expect(handedOver(client)).rejects.toMatchObject({ code: 'conflict' });
});

const PROGRAM = fileURLToPath(
  new URL('../../../../src/runtime/kubernetes/keeper/keeper-program.ts', import.meta.url),
);
it.skipIf(!IS_ROOT)(
  'ends as soon as its Pod is to end, as the first process there (skipped without root)',
  async () => {
    const folder = scratchFolder();
    writeFileSync(join(folder, 'key'), randomBytes(32));
    mkdirSync(join(folder, 'control/run'), { recursive: true });
    const program = [process.execPath, PROGRAM, '--key-file', join(folder, 'key')];
    const places = ['--control', join(folder, 'control'), '--volume', folder];
    const alone = spawn('unshare', ['--pid', '--net', '--fork', ...program, ...places], { stdio: 'inherit' });
    const ended = once(alone, 'exit');
    await eventually(() => expect(existsSync(join(folder, 'control/own'))).toBe(true));
    const { pid } = alone;
    const keeper = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
    process.kill(keeper, 'SIGTERM');
    expect(await ended).toEqual([0, null]);
  },
);
