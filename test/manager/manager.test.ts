import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { StartError } from '../../src/contract/errors.ts';
import { managerConfig } from '../../src/manager/config/config.ts';
import { Manager } from '../../src/manager/manager.ts';
import { NoRuntime } from '../../src/runtime/no-runtime.ts';
import { SILENT } from '../support/manager/outbox.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { ScriptedRuntime } from '../support/manager/scripted-runtime.ts';
import { scratchFolder } from '../support/scratch.ts';

function managerOf(folder: string, runtime = new NoRuntime(), listen = '127.0.0.1:0'): Manager {
  const options = {
    ...{ listen, runtime: 'none', database: `sqlite:${join(folder, 'manager.db')}` },
    ...{ secret_key_file: join(folder, 'key'), data_dir: join(folder, 'data') },
  };
  return new Manager({ config: managerConfig(options, {}, {}), log: SILENT, clock: systemClock, runtime });
}

it('a manager has a URL while it runs, and stops once however often it is asked', async () => {
  const manager = managerOf(scratchFolder());
  expect(manager.url).toBe('');
  await manager.start();
  expect((await fetch(`${manager.url}/healthz`)).status).toBe(200);
  const { url } = manager;
  const stopping = manager.stop();
  expect(manager.stop()).toBe(stopping);
  await stopping;
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});

it('a manager that was never started can be stopped', async () => {
  await managerOf(scratchFolder()).stop();
});

it('a start whose runtime does not work here leaves nothing open', async () => {
  class Impossible extends NoRuntime {
    override async start(): Promise<void> {
      throw new StartError('this machine has no sandboxes');
    }
  }
  const folder = scratchFolder();
  const failing = managerOf(folder, new Impossible());
  await expect(failing.start()).rejects.toThrow('this machine has no sandboxes');
  await failing.stop();
  const next = managerOf(folder);
  await next.start();
  await next.stop();
});

it('the networks of sandboxes are opened before the API listens, and closed with the manager', async () => {
  const runtime = new ScriptedRuntime();
  const { networks } = runtime;
  const failing = managerOf(scratchFolder(), runtime);
  networks.open = async () => {
    expect(failing.url).toBe('');
    throw new Error('no rights to make networks');
  };
  await expect(failing.start()).rejects.toThrow('no rights to make networks');
  await failing.stop();
  expect(networks.calls).toEqual(['close']);
});

it('a start whose address is in use fails, and can be stopped', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as { port: number };
  const failing = managerOf(scratchFolder(), new NoRuntime(), `127.0.0.1:${port}`);
  await expect(failing.start()).rejects.toThrow('is in use');
  await failing.stop();
});

it('a stop waits for the operation in progress', async () => {
  const runtime = new ScriptedRuntime();
  const folder = scratchFolder();
  const { client, stop } = await startManager(`sqlite:${join(folder, 'manager.db')}`, { runtime, folder });
  const team = await client('team_1', 'sandboxes:write');
  const path = `/api/v1/sandboxes/${await team.claim()}`;
  const release = runtime.hold('end');
  expect((await team.call('DELETE', path)).status).toBe(202);
  let is_stopped = false;
  const stopping = stop().then(() => {
    is_stopped = true;
  });
  await expect(team.get(path)).rejects.toThrow();
  expect(is_stopped).toBe(false);
  release();
  await stopping;
  const again = await startManager(`sqlite:${join(folder, 'manager.db')}`, { runtime, folder });
  const after = await again.client('team_1', 'sandboxes:read');
  expect((await after.get(`${path}?include_deleted=true`)).data.status).toBe('deleted');
});
