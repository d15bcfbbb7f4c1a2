import type { DaemonClient } from '../client/daemon-client.ts';
import type { ManagerClient } from '../client/manager-client.ts';
import type { Sandbox } from '../client/sandbox.ts';
import type { ServerLink } from './api/server-link.ts';
import type { Output } from './terminal/output.ts';

/** What every command gets: stdout, stderr, and whether it prints JSON. */
export interface Terminal {
  out: Output;
  err: Output;
  json: boolean;
}

/** What a command gets that talks to a daemon, or to that of a sandbox through its manager. */
export interface Context extends Terminal {
  sandbox: Sandbox;
  /** The address of the daemon or manager as messages show it. */
  shown: string;
}

/** What a command gets that talks to a daemon itself. */
export interface DaemonContext extends Context {
  daemon: DaemonClient;
  link: ServerLink;
}

/** What a command gets that talks to a manager. */
export interface ManagerContext extends Terminal {
  manager: ManagerClient;
  /** The sandbox that is meant unless the command names one: an id, or the beginning of one. */
  sandbox_id: string | null;
}
