import { connect, type Socket } from 'node:net';
import { type Clock, runTime } from '../../base/clock.ts';
import { CONNECT_TIMEOUT_MS } from '../../contract/defaults.ts';
import { parseCidr } from '../../webhook/address.ts';
import { AddressGuard } from '../../webhook/address-guard.ts';
import { attemptErrorOf, ConnectError } from '../../webhook/attempt-error.ts';
import { blockedDetail, errorDetail, type Target, timeoutDetail } from '../../webhook/error-detail.ts';
import { SharedLookup } from '../../webhook/lookup.ts';
import { threadlessResolve } from '../../webhook/resolver.ts';

const KEEP_ALIVE_MS = 60_000;

/** Dials consumers for the daemons of sandboxes, with the checks of every delivery. Source: contract section 7. */
export class Dialer {
  readonly #clock: Clock;
  readonly #lookup: SharedLookup;

  /** `webhook_cidrs`: ranges that may be dialled in addition to public addresses. */
  constructor(clock: Clock, webhook_cidrs: string[]) {
    this.#clock = clock;
    const guard = new AddressGuard(webhook_cidrs.flatMap((range) => parseCidr(range) ?? []));
    this.#lookup = new SharedLookup(guard, threadlessResolve());
  }

  /** Connects to `host:port` within 5 s, unless `signal` aborts before. Rejects with a `ConnectError`. */
  dial(authority: string, signal: AbortSignal): Promise<Socket> {
    const colon = authority.lastIndexOf(':');
    const target = { hostname: authority.slice(0, colon), port: Number(authority.slice(colon + 1)) };
    const { hostname, port } = target;
    if (this.#lookup.refusesLiteral(hostname)) {
      return Promise.reject(new ConnectError('blocked', blockedDetail(target)));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const { lookup } = this.#lookup;
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = connect({ host, port, lookup, allowHalfOpen: true, noDelay: true });
    const timer = runTime(this.#clock).after(CONNECT_TIMEOUT_MS, () => {
      socket.destroy(tooLate(target, this.#lookup.isPending(hostname)));
    });
    const giveUp = () => socket.destroy(new ConnectError('connect', 'the daemon has closed the tunnel'));
    signal.addEventListener('abort', giveUp);
    const settled = () => {
      timer.cancel();
      signal.removeEventListener('abort', giveUp);
    };
    socket.on('error', (error) => {
      settled();
      reject(error instanceof ConnectError ? error : connectError(error, target));
    });
    socket.once('connect', () => {
      settled();
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
      resolve(socket);
    });
    return promise;
  }
}

function tooLate(target: Target, is_resolving: boolean): ConnectError {
  const stage = is_resolving ? 'resolving' : 'connecting';
  return new ConnectError(is_resolving ? 'dns' : 'connect', timeoutDetail(stage, CONNECT_TIMEOUT_MS, target));
}

function connectError(error: Error, target: Target): ConnectError {
  const attempt_error = attemptErrorOf(error, false);
  return new ConnectError(attempt_error, errorDetail(attempt_error, error, target));
}
