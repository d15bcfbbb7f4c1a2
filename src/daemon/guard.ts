import { timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { CatalogueError } from '../contract/errors.ts';

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];

export interface GuardOptions {
  host: string;
  /** Known once the listeners are up. */
  port: () => number;
  control_token: () => string;
  /** True for a connection over the control socket: its file's mode is what guards it. */
  is_trusted: (socket: Socket) => boolean;
}

/**
 * Lets a request through, or throws `forbidden` or `unauthorized`: a page in a browser inside the sandbox may not
 * speak to the daemon at all, and control needs the token. Source: contract section 4, below the table of routes.
 */
export class Guard {
  readonly #options: GuardOptions;
  readonly #names: Set<string>;
  #last_host = '';
  #token: Buffer | null = null;

  constructor(options: GuardOptions) {
    this.#options = options;
    const { host } = options;
    this.#names = new Set([...LOCAL_NAMES, host.includes(':') ? `[${host}]` : host.toLowerCase()]);
  }

  check(request: FastifyRequest): void {
    const { headers, socket } = request.raw;
    if (this.#options.is_trusted(socket)) return;
    this.#checkHost(headers.host);
    if (headers.origin !== undefined) this.#checkOrigin(headers.origin);
    if (headers['sec-fetch-site'] === 'cross-site') {
      throw new CatalogueError('forbidden', 'Sec-Fetch-Site: requests from other sites are refused.');
    }
    if (request.routeOptions.config.is_open !== true && !request.is404)
      this.#checkToken(headers.authorization);
    if (request.routeOptions.config.is_socket_only) {
      throw new CatalogueError('forbidden', 'This is served on the control socket alone.');
    }
  }

  #checkHost(host: string | undefined): void {
    // Nearly all requests repeat the one before.
    if (host !== undefined && host === this.#last_host) return;
    const name = /^(.*?)(:\d+)?$/.exec(host ?? '')?.[1]?.toLowerCase();
    if (!host || !name || !this.#names.has(name)) {
      throw new CatalogueError('forbidden', 'Host: only localhost, 127.0.0.1 and [::1] are served.');
    }
    this.#last_host = host;
  }

  #checkOrigin(origin: string): void {
    const allowed = [...this.#names].map((name) => `http://${name}:${this.#options.port()}`);
    if (!allowed.includes(origin)) {
      throw new CatalogueError('forbidden', 'Origin: requests from other origins are refused.');
    }
  }

  #checkToken(authorization: string | undefined): void {
    const given = Buffer.from(/^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '');
    this.#token ??= Buffer.from(this.#options.control_token());
    if (given.length !== this.#token.length || !timingSafeEqual(given, this.#token)) {
      throw new CatalogueError('unauthorized');
    }
  }

  /** The token was made anew. */
  forgetToken(): void {
    this.#token = null;
  }
}
