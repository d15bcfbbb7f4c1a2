import net from 'node:net';
import type { Scene } from './scene.ts';

/** What a client does with its connection: nothing, a header a second, or a byte of a body a second. */
type Habit = 'idle' | 'headers' | 'body';

/** Clients that take connections and hardly use them. */
export class SlowClients {
  readonly #sockets: net.Socket[] = [];
  readonly #timers: NodeJS.Timeout[] = [];
  connected = 0;
  closed = 0;

  constructor(scene: Scene, port: number, count: number, habit: Habit) {
    for (let n = 0; n < count; n++) this.#connect(port, habit);
    scene.undo(() => this.leave());
  }

  #connect(port: number, habit: Habit): void {
    const socket = net.connect(port, '127.0.0.1', () => {
      this.connected += 1;
      this.#begin(socket, port, habit);
    });
    socket.on('error', () => {});
    socket.once('close', () => {
      this.closed += 1;
    });
    // An answer that nobody reads would keep the end of the connection from being seen.
    socket.resume();
    this.#sockets.push(socket);
  }

  #begin(socket: net.Socket, port: number, habit: Habit): void {
    if (habit === 'idle') return;
    const head = `POST /api/v1/webhook/publish HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Type: application/json\r\n`;
    socket.write(habit === 'headers' ? head : `${head}Content-Length: 100000\r\n\r\n{`);
    const piece = habit === 'headers' ? 'X-A: b\r\n' : ' ';
    this.#timers.push(setInterval(() => socket.writable && socket.write(piece), 1_000));
  }

  leave(): void {
    for (const timer of this.#timers) clearInterval(timer);
    for (const socket of this.#sockets) socket.destroy();
  }
}
