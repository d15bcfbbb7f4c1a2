import { join } from 'node:path';
import { DEFAULT_STATE_DIR, DEFAULT_URL } from '../contract/defaults.ts';
import { EXIT, Failure } from './failure.ts';
import { readSecretFile } from './secret-file.ts';

/** Where the daemon is: `socket_path` for a Unix socket, else the URL's host. `shown` is how to call it. */
export interface Address {
  shown: string;
  url: URL;
  socket_path: string | null;
}

/** The control token, or why there is none, to be told where the daemon asks for it. */
export type Token = { value: string } | { missing: string };

export interface DaemonOptions {
  url?: string | undefined;
  tokenFile?: string | undefined;
  stateDir?: string | undefined;
}

/**
 * How to reach the daemon, by flags before environment. Source: contract section 4: `SANDBOXD_URL`,
 * `SANDBOXD_CONTROL_TOKEN_FILE`, `SANDBOXD_STATE_DIR`. A token file that is named must be readable; the one in
 * the state directory need not be, because publishing and a Unix socket need no token.
 */
export function findDaemon(flags: DaemonOptions, env: NodeJS.ProcessEnv): { address: Address; token: Token } {
  const address = parseAddress(flags.url ?? (env.SANDBOXD_URL || DEFAULT_URL));
  const named = flags.tokenFile ?? (flags.stateDir === undefined ? env.SANDBOXD_CONTROL_TOKEN_FILE : '');
  if (named) return { address, token: { value: readToken(named) } };
  const state_dir = flags.stateDir ?? (env.SANDBOXD_STATE_DIR || DEFAULT_STATE_DIR);
  try {
    return { address, token: { value: readToken(join(state_dir, 'control-token')) } };
  } catch (error) {
    return { address, token: { missing: (error as Error).message } };
  }
}

function parseAddress(text: string): Address {
  const socket = /^unix:(?:\/\/)?(\/.+)$/.exec(text)?.[1];
  if (socket) return { shown: text, url: new URL('http://localhost'), socket_path: socket };
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol) || !url.hostname) {
    throw new Failure(EXIT.usage, `--url must be http://…, https://… or unix:/path, not '${text}'`);
  }
  return { shown: url.origin, url, socket_path: null };
}

function readToken(path: string): string {
  const token = readSecretFile(path);
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Failure(EXIT.usage, `${path} holds no control token`);
  return token;
}
