import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_STATE_DIR, DEFAULT_URL } from '../../contract/defaults.ts';
import { EXIT, Failure } from '../failure.ts';
import { readSecretFile } from './secret-file.ts';

/** Where the daemon is: `socket_path` for a Unix socket, else the URL's host. `shown` is how to call it. */
export interface DaemonAddress {
  shown: string;
  url: URL;
  socket_path: string | null;
}

/** Whose a token's file is. */
export interface TokenOwner {
  uid: number;
  path: string;
}

/**
 * The control token, or why there is none, to be told where the daemon asks for it. With an `owner` a port of this
 * machine is given it only where its owner listens there.
 */
export type Token = { value: string; owner?: TokenOwner } | { missing: string };

export interface ConnectionOptions {
  url?: string | undefined;
  tokenFile?: string | undefined;
  stateDir?: string | undefined;
}

/** Names of this machine's loopback; what other names lead to is not known before they are resolved. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * How to reach the daemon, by flags before environment. Source: contract section 4: `SANDBOXD_URL`,
 * `SANDBOXD_CONTROL_TOKEN_FILE`, `SANDBOXD_STATE_DIR`. A token file that is named must be readable; the one in
 * the state directory need not be, because publishing and a Unix socket need no token, and never leaves this machine.
 */
export function findDaemon(
  flags: ConnectionOptions,
  env: NodeJS.ProcessEnv,
): { address: DaemonAddress; token: Token } {
  const address = parseAddress(flags.url ?? (env.SANDBOXD_URL || DEFAULT_URL));
  if (flags.tokenFile) return { address, token: { value: readToken(flags.tokenFile) } };
  const named = flags.stateDir === undefined ? env.SANDBOXD_CONTROL_TOKEN_FILE : '';
  if (named) return { address, token: guarded(address, ownedToken(named)) };
  const state_dir = flags.stateDir ?? (env.SANDBOXD_STATE_DIR || DEFAULT_STATE_DIR);
  const path = join(state_dir, 'control-token');
  if (address.socket_path !== null) return { address, token: { missing: 'a Unix socket needs no token' } };
  if (!isLoopback(address)) {
    return { address, token: { missing: `the token of ${path} is for this machine alone` } };
  }
  try {
    return { address, token: ownedToken(path) };
  } catch (error) {
    return { address, token: { missing: (error as Error).message } };
  }
}

/** Whoever listens on a port of another machine can't be known: a token whose file is named goes there as it is. */
function guarded(address: DaemonAddress, token: Token): Token {
  return isLoopback(address) || !('value' in token) ? token : { value: token.value };
}

function isLoopback({ url, socket_path }: DaemonAddress): boolean {
  return socket_path === null && url.protocol === 'http:' && LOOPBACK.test(url.hostname);
}

function ownedToken(path: string): Token {
  const value = readToken(path);
  return { value, owner: { uid: statSync(path).uid, path } };
}

function parseAddress(text: string): DaemonAddress {
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
