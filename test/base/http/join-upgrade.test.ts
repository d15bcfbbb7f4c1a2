import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { joinUpgrade } from '../../../src/base/http/join-upgrade.ts';

/** Both ends of a connection. */
async function pair(): Promise<[near: Socket, far: Socket]> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  const [far] = (await once(server, 'connection')) as [Socket];
  onTestFinished(() => {
    server.close();
    near.destroy();
    far.destroy();
  });
  return [near, far];
}

it('what the other side has sent before its end arrives, also at a reader that takes its time', async () => {
  const [client, socket] = await pair();
  const [server, other] = await pair();
  joinUpgrade({ socket, head: Buffer.from('first ') }, other);
  expect(String((await once(server, 'data'))[0])).toBe('first ');
  const sent = Buffer.alloc(5_000_000, 'any bytes, ');
  server.end(sent);
  const pieces: Buffer[] = [];
  for await (const piece of client) {
    pieces.push(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(Buffer.concat(pieces).equals(sent)).toBe(true);
});

it('the other side is closed when the client goes', async () => {
  const [client, socket] = await pair();
  const [server, other] = await pair();
  joinUpgrade({ socket, head: Buffer.alloc(0) }, other);
  client.destroy();
  server.resume();
  await Promise.all([once(server, 'close'), once(other, 'close')]);
});
