import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { endTogether } from '../joined-sockets.ts';

/** A way to a server on which every connection breaks once so many bytes have come back over it, which arrive. */
export class FrailLine {
  /** Of the near end. */
  url = '';
  breaks = 0;
  /** How much a connection carries before it breaks. */
  carried_bytes: number;
  readonly #sockets = new Set<Socket>();

  private constructor(carried_bytes: number) {
    this.carried_bytes = carried_bytes;
  }

  static async to(port: number, carried_bytes: number): Promise<FrailLine> {
    const line = new FrailLine(carried_bytes);
    const server = createServer((near) => line.#join(near, createConnection(port, '127.0.0.1')));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    line.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    onTestFinished(() => {
      server.close();
      line.breakAll();
    });
    return line;
  }

  /** Breaks every connection now. */
  breakAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(near: Socket, far: Socket): void {
    let bytes = 0;
    far.on('data', (data) => {
      const rest = this.carried_bytes - bytes;
      bytes += data.length;
      if (data.length > rest) {
        this.breaks += 1;
        far.pause();
        near.end(data.subarray(0, rest));
      } else if (!near.write(data)) {
        far.pause();
        near.once('drain', () => far.resume());
      }
    });
    near.on('data', (data) => far.write(data));
    endTogether(near, far, this.#sockets);
  }
}
