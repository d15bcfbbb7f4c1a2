import type { AttemptError } from '../contract/words.ts';
import type { TransportError } from './error-detail.ts';

/** The error code if a name resolves only to addresses that may not be dialled. */
export const ADDRESS_BLOCKED = 'EBLOCKED';

/** The error code if a connection was not there in time. */
export const CONNECT_TIMEOUT = 'UND_ERR_CONNECT_TIMEOUT';

/** A connection could not be made, and why is known. */
export class ConnectError extends Error {
  readonly attempt_error: AttemptError;

  /** `attempt_error`: the contract's word; `detail`: see `error-detail.ts`. */
  constructor(attempt_error: AttemptError, detail: string) {
    super(detail);
    this.attempt_error = attempt_error;
  }

  /** Why, in one line. */
  get detail(): string {
    return this.message;
  }
}

/** Whether a connection was not there in time. */
export function isConnectTimeout({ code }: { code?: string }): boolean {
  return code === CONNECT_TIMEOUT;
}

/** The contract's word for a transport error. Source: contract section 4, `attempts`. */
export function attemptErrorOf(error: TransportError, is_resolving: boolean): AttemptError {
  if (error instanceof ConnectError) return error.attempt_error;
  const code = error.code ?? '';
  if (code === ADDRESS_BLOCKED) return 'blocked';
  if (isConnectTimeout(error)) return is_resolving ? 'dns' : 'connect';
  if (/^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL)/.test(code)) return 'dns';
  if (
    /^(CERT_|ERR_TLS|ERR_SSL|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|EPROTO|HOSTNAME_MISMATCH|INVALID_CA)/.test(code)
  ) {
    return 'tls';
  }
  if (/^(ECONNREFUSED|EHOST|ENET|EADDR|ETIMEDOUT|EACCES|EPERM|EMFILE|ENFILE)/.test(code)) return 'connect';
  if (/^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET)$/.test(code)) {
    return /bad response/.test(error.message) ? 'protocol' : 'reset';
  }
  // Several addresses were tried: the first one's error speaks for all.
  if (error instanceof AggregateError && error.errors[0]) {
    return attemptErrorOf(error.errors[0], is_resolving);
  }
  return 'protocol';
}
