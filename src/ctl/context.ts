import type { Client } from './api/client.ts';
import type { Output } from './terminal/output.ts';

/** What every command gets: stdout, stderr, and whether it prints JSON. */
export interface Terminal {
  out: Output;
  err: Output;
  json: boolean;
}

/** What a command gets that talks to a daemon, or to that of a sandbox through its manager. */
export interface Context extends Terminal {
  client: Client;
}

/** What a command gets that talks to a manager. */
export interface ManagerContext extends Context {
  /** The sandbox that is meant unless the command names one: an id, or the beginning of one. */
  sandbox: string | null;
}
