import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { CONTROL_SCOPE_HEADER, type ControlScope } from '../../contract/control-scopes.ts';
import { EGRESS_PATH, EGRESS_PROTOCOL } from '../../contract/egress.ts';
import { boundInterimAnswers } from '../control-client.ts';

const SCOPE: ControlScope = 'manage';

/**
 * Opens a tunnel to a sandbox's daemon over its control socket; takes as long as the daemon does. Rejects with the
 * connection's error, such as ECONNREFUSED, or with the status of a refusal.
 */
export function openTunnel(socket_path: string, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const request = httpRequest({
    method: 'GET',
    path: `/api/v1${EGRESS_PATH}`,
    headers: {
      host: 'localhost',
      connection: 'Upgrade',
      upgrade: EGRESS_PROTOCOL,
      [CONTROL_SCOPE_HEADER]: SCOPE,
    },
    signal,
    // The end of one direction is passed on, not answered with the end of the other.
    createConnection: () => connect({ path: socket_path, allowHalfOpen: true }),
  });
  boundInterimAnswers(request);
  request.on('error', reject);
  request.once('response', (response) => {
    response.destroy();
    reject(new Error(`the daemon answered ${response.statusCode}`));
  });
  request.once('upgrade', (_response, socket, head) => {
    socket.on('error', () => {}); // 'close' follows
    if (head.length > 0) socket.unshift(head);
    resolve(socket as Socket);
  });
  request.end();
  return promise;
}
