import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_STATE_DIR, DEFAULT_URL } from '../../contract/defaults.ts';
import { EXIT, Failure } from '../failure.ts';
import { readSecretFile } from './secret-file.ts';

/** Where a program is: at `socket_path` if that is set, otherwise at `url`. Messages show it as `shown`. */
export interface Address {
  shown: string;
  url: URL;
  socket_path: string | null;
  /** Whose address it is. */
  of: 'daemon' | 'manager';
}

/** The path of both programs' APIs. */
export const API_PATH = '/api/v1';

/** The owner of a token's file. */
export interface TokenOwner {
  uid: number;
  path: string;
}

/**
 * The control token, or why there is none, for the message when the daemon requires one. With an `owner` it is sent to a
 * port of this machine only if that user, or root, listens there.
 */
export type Token = { value: string; owner?: TokenOwner } | { missing: string };

/** The flags that say where the daemon is. */
export interface ConnectionOptions {
  url?: string | undefined;
  tokenFile?: string | undefined;
  stateDir?: string | undefined;
  /** The token itself, which only a profile may hold. */
  token?: string | undefined;
}

/** Hosts that are this machine's loopback; where other names lead is unknown until they are resolved. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * The daemon's address and token, from flags first, then from the environment (`SANDBOXD_URL`,
 * `SANDBOXD_CONTROL_TOKEN_FILE`, `SANDBOXD_STATE_DIR`). A token file that is named must be readable, or it is a usage
 * error. The one in the state directory may be missing, because publishing and a Unix socket require no token, and its
 * token never leaves this machine. Contract section 4, "`sandboxctl`".
 */
export function findDaemon(
  flags: ConnectionOptions,
  env: NodeJS.ProcessEnv,
): { address: Address; token: Token } {
  const address = parseAddress(flags.url ?? (env.SANDBOXD_URL || DEFAULT_URL));
  if (flags.tokenFile) return { address, token: { value: readToken(flags.tokenFile) } };
  if (flags.token !== undefined)
    return { address, token: { value: checkedToken(flags.token, 'the profile') } };
  const named = flags.stateDir === undefined ? env.SANDBOXD_CONTROL_TOKEN_FILE : '';
  if (named) return { address, token: guarded(address, ownedToken(named)) };
  const state_dir = flags.stateDir ?? (env.SANDBOXD_STATE_DIR || DEFAULT_STATE_DIR);
  const path = join(state_dir, 'control-token');
  if (address.socket_path !== null) return { address, token: { missing: 'a Unix socket requires no token' } };
  if (!isLoopback(address)) {
    return { address, token: { missing: `the token in ${path} is sent to this machine only` } };
  }
  try {
    return { address, token: ownedToken(path) };
  } catch (error) {
    return { address, token: { missing: (error as Error).message } };
  }
}

/** Who listens on a port of another machine cannot be known: a named token is sent there without that check. */
function guarded(address: Address, token: Token): Token {
  return isLoopback(address) || !('value' in token) ? token : { value: token.value };
}

function isLoopback({ url, socket_path }: Address): boolean {
  return socket_path === null && url.protocol === 'http:' && LOOPBACK.test(url.hostname);
}

function ownedToken(path: string): Token {
  const value = readToken(path);
  return { value, owner: { uid: statSync(path).uid, path } };
}

function parseAddress(text: string): Address {
  const socket = /^unix:(?:\/\/)?(\/.+)$/.exec(text)?.[1];
  const of = 'daemon';
  if (socket) return { shown: text, url: new URL('http://localhost'), socket_path: socket, of };
  const url = httpUrl(text);
  if (url === null) {
    throw new Failure(EXIT.usage, `--url must be http://…, https://… or unix:/path, not '${text}'`);
  }
  return { shown: url.origin, url, socket_path: null, of };
}

/** The http or https URL that a text is; null for any other text. */
export function httpUrl(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url && ['http:', 'https:'].includes(url.protocol) && url.hostname ? url : null;
}

/** The token in a file that is named. A usage error where it cannot be read or a header cannot carry it. */
export function readToken(path: string): string {
  return checkedToken(readSecretFile(path), path);
}

/** A token as a header can carry it; otherwise a usage error that says where it comes from, never what it is. */
export function checkedToken(token: string, source: string): string {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Failure(EXIT.usage, `${source} does not contain a token`);
  return token;
}
