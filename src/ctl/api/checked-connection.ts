import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Listener, listenersNowOn, takersOf } from '../../base/linux/sockets.ts';
import { EXIT, Failure } from '../failure.ts';
import type { TokenOwner } from './config.ts';

const ROOT = 0;

/**
 * Connects to a port of this machine and checks that the token's owner, or root, listens there: any user may take a port
 * that the daemon has left, and the control token gives all rights over the daemon. Rejects with the socket's error, or
 * with a `Failure` if another user listens.
 */
export async function checkedConnection(url: URL, owner: TokenOwner, signal?: AbortSignal): Promise<Socket> {
  const port = Number(url.port || 80);
  const before = listenersNowOn(port);
  const socket = connect({
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port,
    ...(signal ? { signal } : {}),
  });
  await once(socket, 'connect');
  const takers = takersOf(socket.remoteAddress ?? '', listenersNowOn(port));
  // The same socket before and after: no other program has listened in between.
  const isKnown = ({ inode }: Listener) => before.some((each) => each.inode === inode);
  const stranger = takers.find((each) => !isKnown(each) || (each.uid !== owner.uid && each.uid !== ROOT));
  if (takers.length > 0 && !stranger) return socket;
  socket.destroy();
  const who = stranger ? `user ${stranger.uid} listens on it` : 'it is unknown who listens on it';
  throw new Failure(
    EXIT.failed,
    `the token is not sent to ${url.host}: ${who}, not the owner of ${owner.path}; to send it anyway, name its file with --token-file`,
  );
}
