import type { Socket } from 'node:net';
import type { Upgrade } from './listener.ts';
import { relay } from './relay.ts';

/**
 * Passes bytes both ways between an upgraded connection and another one, until either ends. What the other one has sent
 * before its end still arrives.
 */
export function joinUpgrade({ socket, head }: Upgrade, other: Socket): void {
  if (head.length > 0) other.write(head);
  socket.pipe(other);
  if (relay(other, { target: socket })) other.once('end', () => socket.end());
  else other.pipe(socket);
  socket.on('error', () => {}); // 'close' follows
  other.on('error', () => {});
  socket.once('close', () => other.destroy());
  other.once('close', () => socket.destroySoon());
}
