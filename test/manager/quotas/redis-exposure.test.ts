import { type AddressInfo, createServer } from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { letsAnybodyCommand } from '../../../src/manager/quotas/redis-exposure.ts';
import { freePort } from '../../support/free-port.ts';
import { HAS_REDIS, RedisServer } from '../../support/redis.ts';

const withPassword = (url: string, user = '') =>
  url.replace('redis://', `redis://${user}:made-for-this-test@`);

describe.skipIf(!HAS_REDIS)('a Redis', () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await RedisServer.start();
    return () => server.stop();
  });

  it('without a password takes commands from anybody, also where the URL has one', async () => {
    expect(await letsAnybodyCommand(server.url)).toBe(true);
    expect(await letsAnybodyCommand(withPassword(server.url))).toBe(true);
  });

  it('with a password does not', async () => {
    await server.command('CONFIG', 'SET', 'requirepass', 'made-for-this-test');
    expect(await letsAnybodyCommand(withPassword(server.url))).toBe(false);
    expect(await letsAnybodyCommand(withPassword(server.url, 'default'))).toBe(false);
    // The URL has none, so the server that the manager uses cannot ask for one.
    expect(await letsAnybodyCommand(server.url)).toBe(true);
  });

  it('with named users alone does not', async () => {
    await server.command('ACL', 'SETUSER', 'manager', 'on', '>made-for-this-test', '~*', '+@all');
    await server.command('ACL', 'SETUSER', 'default', 'off');
    expect(await letsAnybodyCommand(withPassword(server.url, 'manager'))).toBe(false);
  });
});

it('a server that is down or silent takes no commands', async () => {
  expect(await letsAnybodyCommand(withPassword(`redis://127.0.0.1:${await freePort()}`))).toBe(false);
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  onTestFinished(() => void silent.close());
  await new Promise((resolve) => silent.once('listening', resolve));
  const { port } = silent.address() as AddressInfo;
  expect(await letsAnybodyCommand(withPassword(`redis://127.0.0.1:${port}`))).toBe(false);
});
