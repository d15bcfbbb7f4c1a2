import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { CONTROL_SCOPE_HEADER } from '../../contract/control-scopes.ts';
import { ApiError } from '../../contract/errors.ts';
import type { ControlToken } from '../control-token.ts';
import { startingError } from '../start-gate.ts';
import { accessOf, includesScope, type RouteAccess } from './route-access.ts';

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];

export interface GuardOptions {
  host: string;
  /** Known once the listeners are up. */
  port: () => number;
  token: ControlToken;
  /** True for a connection over the control socket: its file's mode is what guards it. */
  is_control: (socket: Socket) => boolean;
}

/** Methods whose requests have no content: what follows the head of one may be another request in disguise. */
const BODILESS = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);

/**
 * Lets a request through, or throws `forbidden` or `unauthorized`: a page in a browser inside the sandbox may not
 * speak to the daemon at all, control needs the token, and a request on the control socket reaches no more than the
 * scope that it names. Source: contract section 4, below the table of routes.
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

  /** Whether a request is served before the daemon has started. */
  isEarly(request: FastifyRequest): boolean {
    const access = neededAccess(request);
    return access === 'health' || access === 'socket';
  }

  check(request: FastifyRequest): void {
    if (this.#options.is_control(request.raw.socket)) this.#checkControl(request);
    else this.#checkLocal(request);
  }

  #checkLocal(request: FastifyRequest): void {
    const { headers } = request.raw;
    this.#checkHost(headers.host);
    if (headers.origin !== undefined) this.#checkOrigin(headers.origin);
    if (headers['sec-fetch-site'] === 'cross-site') {
      throw new ApiError('forbidden', 'Sec-Fetch-Site: requests from other sites are refused.');
    }
    const access = neededAccess(request);
    if (access === 'health' || access === 'publish') return;
    this.#checkToken(headers.authorization);
    if (access === 'socket') {
      throw new ApiError('forbidden', 'This is served on the control socket alone.');
    }
  }

  #checkControl(request: FastifyRequest): void {
    const { method, headers } = request.raw;
    if (BODILESS.has(method ?? '') && hasBody(headers)) {
      throw new ApiError('invalid_request', `A ${method} request has no body here.`);
    }
    const access = neededAccess(request);
    if (access === 'health' || access === 'publish') return;
    const scope = access === 'socket' ? 'manage' : access;
    if (includesScope(headers[CONTROL_SCOPE_HEADER], scope)) return;
    throw new ApiError('forbidden', `X-Control-Scope: this needs the scope ${scope}.`, { scope });
  }

  #checkHost(host: string | undefined): void {
    // Nearly all requests repeat the one before.
    if (host !== undefined && host === this.#last_host) return;
    const name = /^(.*?)(:\d+)?$/.exec(host ?? '')?.[1]?.toLowerCase();
    if (!host || !name || !this.#names.has(name)) {
      throw new ApiError('forbidden', 'Host: only localhost, 127.0.0.1 and [::1] are served.');
    }
    this.#last_host = host;
  }

  #checkOrigin(origin: string): void {
    const allowed = [...this.#names].map((name) => `http://${name}:${this.#options.port()}`);
    if (!allowed.includes(origin)) {
      throw new ApiError('forbidden', 'Origin: requests from other origins are refused.');
    }
  }

  #checkToken(authorization: string | undefined): void {
    const { token } = this.#options;
    if (!token.is_read) throw startingError();
    const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
    if (!token.matches(given)) throw new ApiError('unauthorized');
  }
}

/** What the route asks for; a path or a method that is none is answered to anybody. */
function neededAccess({ raw, routeOptions, is404 }: FastifyRequest): RouteAccess {
  if (is404) return 'health';
  const access = accessOf(raw.method ?? '', routeOptions.url);
  if (access === undefined) throw new ApiError('forbidden');
  return access;
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}
