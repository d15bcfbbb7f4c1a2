import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { isCrossSite } from '../../base/http/browser-headers.ts';
import { CONTROL_SCOPE_HEADER, includesScope } from '../../contract/control-socket.ts';
import { ApiError } from '../../contract/errors.ts';
import type { DaemonAccess } from '../../contract/routes/route.ts';
import type { ControlToken } from '../control-token.ts';
import { startingError } from '../start-gate.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the daemon requires of the callers of a route. */
    access?: DaemonAccess;
    /** It does not wait for its turn. */
    is_light?: boolean;
  }
}

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/** What a guard checks requests against. */
export interface GuardOptions {
  /** The value of `--host`. */
  host: string;
  /** The port of the TCP listeners; called only while they listen. */
  port: () => number;
  /** Grants control over TCP. */
  token: ControlToken;
  /** Whether a connection came over the control socket, which its file mode protects. */
  is_control: (socket: Socket) => boolean;
}

/** Methods without a request body: bytes after the head could be a hidden second request. */
const BODILESS = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);

/**
 * Decides whether a request may reach its route. Pages in a browser inside the sandbox are refused, control over TCP
 * requires the token, and a request on the control socket may use only the scope that it names.
 * Source: contract section 4, below the table of routes.
 */
export class Guard {
  readonly #options: GuardOptions;
  readonly #names: Set<string>;
  #last_host = '';

  constructor(options: GuardOptions) {
    this.#options = options;
    const { host } = options;
    this.#names = new Set([...LOCAL_NAMES, host.includes(':') ? `[${host}]` : host.toLowerCase()]);
  }

  /** Whether a request is served even before the daemon has started. */
  isEarly(request: FastifyRequest): boolean {
    const access = neededAccess(request);
    return access === 'health' || access === 'socket';
  }

  /** Whether a `Host` names this daemon. */
  acceptsHost(host: string | undefined): boolean {
    // Nearly all requests have the same host as the one before.
    if (host !== undefined && host === this.#last_host) return true;
    const name = /^(.*?)(:\d+)?$/.exec(host ?? '')?.[1]?.toLowerCase();
    if (!host || !name || !this.#names.has(name)) return false;
    this.#last_host = host;
    return true;
  }

  /** Throws `forbidden`, `unauthorized`, `invalid_request` or `outbox_unavailable` if the request is refused. */
  check(request: FastifyRequest): void {
    if (this.#options.is_control(request.raw.socket)) this.#checkControl(request);
    else this.#checkLocal(request);
  }

  #checkLocal(request: FastifyRequest): void {
    const { headers } = request.raw;
    if (!this.acceptsHost(headers.host)) {
      throw new ApiError('forbidden', 'Host: must be localhost, 127.0.0.1 or [::1].');
    }
    if (headers.origin !== undefined) this.#checkOrigin(headers.origin);
    if (isCrossSite(headers)) {
      throw new ApiError('forbidden', 'Sec-Fetch-Site: cross-site requests are refused.');
    }
    const access = neededAccess(request);
    if (access === 'health' || access === 'open') return;
    this.#checkToken(headers.authorization);
    if (access === 'socket') {
      throw new ApiError('forbidden', 'This route is served only on the control socket.');
    }
  }

  #checkControl(request: FastifyRequest): void {
    const { method, headers } = request.raw;
    if (BODILESS.has(method ?? '') && hasBody(headers)) {
      throw new ApiError('invalid_request', `A ${method} request must not have a body.`);
    }
    const access = neededAccess(request);
    if (access === 'health' || access === 'open') return;
    const scope = access === 'socket' ? 'manage' : access;
    if (includesScope(headers[CONTROL_SCOPE_HEADER], scope)) return;
    throw new ApiError('forbidden', `X-Control-Scope: this route requires the scope ${scope}.`, { scope });
  }

  #checkOrigin(origin: string): void {
    const allowed = [...this.#names].map((name) => `http://${name}:${this.#options.port()}`);
    if (!allowed.includes(origin)) {
      throw new ApiError('forbidden', 'Origin: cross-origin requests are refused.');
    }
  }

  #checkToken(authorization: string | undefined): void {
    const { token } = this.#options;
    if (!token.is_read) throw startingError();
    const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
    if (!token.matches(given)) throw new ApiError('unauthorized');
  }
}

/** The access that a route requires; unknown paths and methods are answered without any. */
function neededAccess({ routeOptions, is404 }: FastifyRequest): DaemonAccess {
  if (is404) return 'health';
  const { access } = routeOptions.config;
  if (access === undefined) throw new ApiError('forbidden');
  return access;
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}
