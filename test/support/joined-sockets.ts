import type { Socket } from 'node:net';

/** Ends each of two joined connections with the other; while they are open, both are in `open`. */
export function endTogether(one: Socket, two: Socket, open: Set<Socket>): void {
  for (const [socket, other] of [
    [one, two],
    [two, one],
  ] as const) {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      open.delete(socket);
      other.destroy();
    });
  }
}
