import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listenersNowOn, listenersOn, listeningPorts, takersOf } from '../../../src/base/linux/sockets.ts';

describe("the kernel's table of listeners", () => {
  const listener = (address: string, uid: number) => ({ address, uid, inode: String(uid) });
  const any = listener('00000000', 1);
  const any_6 = listener('0'.repeat(32), 2);
  const loopback = listener('0100007F', 3);
  const mapped = listener('0000000000000000FFFF00000100007F', 4);
  const loopback_6 = listener('00000000000000000000000001000000', 5);

  it.each([
    ['127.0.0.1', [any, loopback], [loopback]],
    ['127.0.0.1', [any_6, mapped], [mapped]],
    ['::ffff:127.0.0.1', [any_6], [any_6]],
    ['127.0.0.2', [any, loopback], [any]],
    ['::1', [any_6, loopback_6, loopback], [loopback_6]],
    ['2001:db8::1:2', [any_6], [any_6]],
    ['127.0.0.1', [], []],
  ])('says who takes connections to %s', (address, listeners, takers) => {
    expect(takersOf(address, listeners)).toEqual(takers);
  });

  it('knows the sockets of this machine', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect(await listeningPorts()).toContain(port);
    const expected = [
      { address: '0100007F', uid: process.getuid?.(), inode: expect.stringMatching(/^\d+$/) },
    ];
    expect(await listenersOn(port)).toEqual(expected);
    expect(listenersNowOn(port)).toEqual(expected);
    expect(listenersNowOn(port + 0x10000)).toEqual([]);
  });
});
