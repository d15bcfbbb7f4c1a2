import type { Socket } from 'node:net';
import type { Upgrade } from './listener.ts';

/** Passes bytes both ways between an upgraded connection and another one, until either ends. */
export function joinUpgrade({ socket, head }: Upgrade, other: Socket): void {
  if (head.length > 0) other.write(head);
  for (const [from, to] of [
    [socket, other],
    [other, socket],
  ] as const) {
    from.pipe(to);
    from.on('error', () => to.destroy());
    from.once('close', () => to.destroy());
  }
}
