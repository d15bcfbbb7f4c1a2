import type { TlsOptions } from 'node:tls';

/** The keeper's port in every Pod. */
export const KEEPER_PORT = 49984;

/** What a connection is for, as agreed on in its handshake: the daemon's API, or the keeper's own. */
export const CONTROL_PROTOCOL = 'sandboxd-control';
/** See `CONTROL_PROTOCOL`. */
export const KEEPER_PROTOCOL = 'sandboxd-keeper';

/** The name of the one key that a keeper knows. */
export const KEY_IDENTITY = 'manager';
/** Bytes of a Pod's key, which both ends prove to have: there are no certificates, and nobody else to trust. */
export const KEY_BYTES = 32;

/** The key is never sent, and each connection has keys of its own, of which nothing can be learnt from it later. */
export const KEEPER_TLS = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  // Node has no keys of this kind in TLS 1.3.
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const satisfies TlsOptions;

/** The keeper's own routes. */
export const KEEPER_PATHS = {
  /** POST a `HandOverTrust` with the sandbox's id: pages of undelivered records, one in a line. */
  hand_over: '/hand-over',
  /** GET and PUT the working folder as a tar stream. */
  work: '/work',
  /** GET and PUT what a sandbox with a persistent root has changed of its image, as a tar stream. */
  root: '/root',
  /** GET the copy of the outbox that the daemon made for a fork, PUT the outbox of a new daemon. */
  outbox: '/outbox',
  /** POST: the volume is complete, and the daemon may begin. */
  begin: '/begin',
} as const;

/** The folders of a sandbox's volume. */
export const VOLUME = {
  /** What the sandbox works on. */
  work: 'work',
  /** Mounted where the daemon has its state; the folder of that is in it, so that it can be the daemon's alone. */
  state: 'state',
  /** The daemon's state directory in `state`. */
  state_dir: 'daemon',
  /** What a sandbox with a persistent root has made of its image; see `ROOT_FOLDERS`. */
  root: 'root',
} as const;

/** The folder of the control volume that the sandbox sees; the others are the keeper's alone. */
export const RUN_FOLDER = 'run';
/** Made in the run folder once the volume of a fork is complete. */
export const BEGIN_FILE = 'begin';

/** The body of an answer that is no success. */
export interface KeeperFailure {
  code: string;
  message: string;
}

/** The end of a hand-over that is complete; without it, it was cut off. */
export const HAND_OVER_END = 'end';
