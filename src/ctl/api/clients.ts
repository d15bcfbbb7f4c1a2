import { DaemonClient } from '../../client/daemon-client.ts';
import { ManagerClient } from '../../client/manager-client.ts';
import type { Address, Token } from './config.ts';
import { ServerLink } from './server-link.ts';

/** A person at a terminal is told of each failure, rather than kept waiting. */
const RETRY = { retries: 0 };

/** The daemon at an address, and the way to it. */
export function daemonAt(address: Address, token: Token): { daemon: DaemonClient; link: ServerLink } {
  const link = new ServerLink(address, token);
  return { daemon: new DaemonClient(optionsOf(address), link), link };
}

/** The manager at an address. */
export function managerAt(address: Address, token: Token): ManagerClient {
  return new ManagerClient(optionsOf(address), new ServerLink(address, token));
}

function optionsOf({ url }: Address) {
  return { url: url.origin + url.pathname, retry: RETRY };
}
