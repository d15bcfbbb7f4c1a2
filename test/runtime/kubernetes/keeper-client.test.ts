import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { KeeperClient } from '../../../src/runtime/kubernetes/keeper-client.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';

it('a keeper that takes connections and says nothing is given up after half a minute', async () => {
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const clock = new ManualClock();
  const { port } = server.address() as AddressInfo;
  const client = new KeeperClient({ host: '127.0.0.1', port, key: Buffer.alloc(32) }, clock);
  const reached = expect(client.untilReached()).rejects.toMatchObject({
    ...{ code: 'internal_error', message: expect.stringContaining('ETIMEDOUT') },
  });
  let is_over = false;
  void reached.finally(() => {
    is_over = true;
  });
  await eventually(async () => {
    await clock.advance(1_000);
    expect(is_over).toBe(true);
  });
  expect(clock.monotonicMs()).toBeLessThan(60_000);
  await reached;
});
