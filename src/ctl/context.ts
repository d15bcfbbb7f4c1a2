import type { Client } from './api/client.ts';
import type { Output } from './terminal/output.ts';

/** What every command is given: the two streams, and whether its output is JSON for a script. */
export interface Terminal {
  out: Output;
  err: Output;
  json: boolean;
}

/** What a command that talks to the daemon is given. */
export interface Context extends Terminal {
  client: Client;
}
