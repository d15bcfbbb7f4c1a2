import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectRelayed, joinUpgrade, relay } from '../../../src/base/http/relay.ts';
import { eventually } from '../../support/eventually.ts';

/** Both ends of a connection, the near one made by `open`. */
async function pair(open: typeof connectRelayed): Promise<[near: Socket, far: Socket]> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = open({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  const [far] = (await once(server, 'connection')) as [Socket];
  onTestFinished(() => {
    server.close();
    near.destroy();
    far.destroy();
  });
  return [near, far];
}

async function scene() {
  const [source, sender] = await pair(connectRelayed);
  const [target, receiver] = await pair(connect);
  return { source, sender, target, receiver };
}

async function readAll(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of socket) {
    pieces.push(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return Buffer.concat(pieces);
}

const SENT = randomBytes(8_000_000);

describe('a relayed connection', () => {
  it('loses and changes nothing for a reader that takes its time, whatever came before', async () => {
    const { source, sender, target, receiver } = await scene();
    sender.write('as a stream');
    expect(String((await once(source, 'data'))[0])).toBe('as a stream');
    source.pause();
    expect(relay(source, { target })).toBe(true);
    source.once('end', () => target.end());
    sender.end(SENT);
    expect((await readAll(receiver)).equals(SENT)).toBe(true);
  });

  it('is left to its stream where the target is in this program, which may keep what it was given', async () => {
    const { source } = await scene();
    expect(relay(source, { target: duplexPair()[0] as Socket })).toBe(false);
  });

  it('stays whole where it is resumed while its target still writes, as an HTTP parser may do', async () => {
    const { source, sender, target, receiver } = await scene();
    relay(source, { target });
    source.once('end', () => target.end());
    sender.end(SENT);
    await eventually(() => expect(target.writableLength).toBeGreaterThan(0), { interval: 1 });
    while (!source.readableEnded) {
      source.resume();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await readAll(receiver)).equals(SENT)).toBe(true);
  });

  it('stops at the last byte that was asked for, and tells so once', async () => {
    const { source, sender, target, receiver } = await scene();
    const bytes = SENT.length - 300_001;
    let times = 0;
    const onDone = () => {
      times += 1;
      target.end();
    };
    expect(relay(source, { target, bytes, onDone })).toBe(true);
    sender.end(SENT);
    expect((await readAll(receiver)).equals(SENT.subarray(0, bytes))).toBe(true);
    expect(times).toBe(1);
  });

  it('takes no more than its target does', async () => {
    const { source, sender, target, receiver } = await scene();
    receiver.pause();
    relay(source, { target });
    sender.write(Buffer.alloc(100_000_000));
    await eventually(() => expect(target.writableLength).toBeGreaterThan(0), { interval: 1 });
    for (let turn = 0; turn < 500; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      expect(target.writableLength).toBeLessThanOrEqual(128 * 1024);
    }
    expect(sender.writableLength).toBeGreaterThan(0);
  });

  it('is one only of a connection that was made for it, once, and without bytes that wait', async () => {
    const { source, sender, target } = await scene();
    expect(relay(target, { target: source })).toBe(false);
    sender.write('waiting');
    await eventually(() => expect(source.readableLength).toBe(7));
    expect(relay(source, { target })).toBe(false);
    expect(String(source.read())).toBe('waiting');
    expect(relay(source, { target })).toBe(true);
    expect(relay(source, { target })).toBe(false);
  });
});

describe('a connection that is not relayed yet', () => {
  it('is an ordinary stream', async () => {
    const { source, sender } = await scene();
    sender.end(SENT);
    expect((await readAll(source)).equals(SENT)).toBe(true);
  });
});

/** Both ends of a connection that may be half open. */
async function halfOpenPair(): Promise<[near: Socket, far: Socket]> {
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

describe('an upgraded connection that is joined to another one', () => {
  it('what the other side has sent before its end arrives, also at a reader that takes its time', async () => {
    const [client, socket] = await halfOpenPair();
    const [server, other] = await halfOpenPair();
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
    const [client, socket] = await halfOpenPair();
    const [server, other] = await halfOpenPair();
    joinUpgrade({ socket, head: Buffer.alloc(0) }, other);
    client.destroy();
    server.resume();
    await Promise.all([once(server, 'close'), once(other, 'close')]);
  });
});
