import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { EXIT, Failure } from '../failure.ts';
import type { TokenOwner } from './config.ts';
import { type Listener, listenersOn, takersOf } from './port-owner.ts';

const ROOT = 0;

/**
 * Connects to a port of this machine and makes sure that it is the token's owner, or root, who listens there: anybody
 * may take a port that the daemon has left, and whoever has the control token has the daemon's rights. Rejects with
 * the socket's error, or with a `Failure` where somebody else listens.
 */
export async function checkedConnection(url: URL, owner: TokenOwner, signal?: AbortSignal): Promise<Socket> {
  const port = Number(url.port || 80);
  const before = listenersOn(port);
  const socket = connect({
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port,
    ...(signal ? { signal } : {}),
  });
  await once(socket, 'connect');
  const takers = takersOf(socket.remoteAddress ?? '', listenersOn(port));
  // The same socket before and after: nobody else has listened in between.
  const isKnown = ({ inode }: Listener) => before.some((each) => each.inode === inode);
  const stranger = takers.find((each) => !isKnown(each) || (each.uid !== owner.uid && each.uid !== ROOT));
  if (takers.length > 0 && !stranger) return socket;
  socket.destroy();
  const who = stranger ? `user ${stranger.uid} listens on it` : 'it is not known who listens on it';
  throw new Failure(
    EXIT.failed,
    `${url.host} is not asked: ${who}, not the owner of ${owner.path}. Name the file with --token-file to send its token in any case`,
  );
}
