import { request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { CONTROL_SCOPE_HEADER, type ControlScope } from '../../contract/control-socket.ts';
import { boundInterimAnswers, connecting, type DaemonAddress } from '../control-client.ts';

const SCOPE: ControlScope = 'manage';

/** What a tunnel is asked for with. */
export interface TunnelRequest {
  /** Below `/api/v1`. */
  path: string;
  protocol: string;
}

/** The daemon refused a tunnel with this HTTP status. */
export class TunnelRefused extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`the daemon answered ${status}`);
    this.status = status;
  }
}

/**
 * Opens a tunnel to a sandbox's daemon over its control socket; takes as long as the daemon does. Rejects with the
 * connection's error, such as ECONNREFUSED, or with TunnelRefused.
 */
export function openTunnel(
  address: DaemonAddress,
  { path, protocol }: TunnelRequest,
  signal: AbortSignal,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const request = httpRequest({
    method: 'GET',
    path: `/api/v1${path}`,
    headers: { host: 'localhost', connection: 'Upgrade', upgrade: protocol, [CONTROL_SCOPE_HEADER]: SCOPE },
    signal,
    // The end of one direction is passed on, not answered with the end of the other.
    ...connecting(address),
  });
  boundInterimAnswers(request);
  request.on('error', reject);
  request.once('response', (response) => {
    response.destroy();
    reject(new TunnelRefused(response.statusCode ?? 0));
  });
  request.once('upgrade', (_response, socket, head) => {
    socket.on('error', () => {}); // 'close' follows
    if (head.length > 0) socket.unshift(head);
    resolve(socket as Socket);
  });
  request.end();
  return promise;
}
