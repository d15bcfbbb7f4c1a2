import type { Client } from './api/client.ts';
import type { Output } from './terminal/output.ts';

/** What every command gets: stdout, stderr, and whether it prints JSON. */
export interface Terminal {
  out: Output;
  err: Output;
  json: boolean;
}

/** What a command that talks to the daemon gets. */
export interface Context extends Terminal {
  client: Client;
}
