import type { Socket } from 'node:net';
import type { Client, Dispatcher, Pool } from 'undici';
import { type Clock, runTime } from '../base/clock.ts';
import { CONNECT_TIMEOUT_MS, RESPONSE_HEADERS_MAX_BYTES } from '../contract/defaults.ts';
import { CONNECT_TIMEOUT } from './attempt-error.ts';
import { blockedDetail, type Target } from './error-detail.ts';
import { Exchange, type RequestTarget, type UsedConnection } from './exchange.ts';
import { SharedLookup } from './lookup.ts';
import type { AttemptResult } from './retry.ts';
import type { Connector } from './tunnelled.ts';

/** One POST request as it is stored and sent: the static headers and the exact body. */
export interface SignedRequest {
  url: string;
  headers: Record<string, string>;
  body: string | Buffer;
}

/** Makes HTTP attempts. */
export interface Transport {
  /** One attempt, ended within `timeout_ms` whatever the receiver does. Never rejects. */
  send(request: SignedRequest, timeout_ms: number): Promise<AttemptResult>;
  /** Aborts the requests in flight and closes every connection. Idempotent. */
  close(): Promise<void>;
}

/** What of the HTTP library is used: the built programs have nothing else of it. */
type HttpLibrary = Pick<typeof import('undici'), 'Client' | 'Pool' | 'buildConnector'>;

/** Makes the way to connections that lead through somebody else; `secure` does TLS over a stream, without a time limit. */
export type MakeConnector = (secure: Connector) => Connector;

/** Attempts over HTTP/1.1 with kept-alive connections. Redirects are never followed. Source: contract sections 2 and 3. */
export class HttpTransport implements Transport {
  readonly #clock: Clock;
  readonly #lookup: SharedLookup;
  readonly #connections: number;
  readonly #connector: MakeConnector | null;
  #library: HttpLibrary | null = null;
  #loading: Promise<HttpLibrary> | null = null;
  /** The connections to each origin. */
  readonly #pools = new Map<string, Pool>();
  /** Connections of a single request. */
  readonly #alone = new Set<Client>();
  /** The parsed URL of the last request: nearly all go to the same one. */
  #target: RequestTarget | null = null;
  #is_closed = false;

  /**
   * `connections` is the most connections to one origin; several transports may share a `lookup`. With a `connector`
   * nothing is looked up and dialled here.
   */
  constructor(
    clock: Clock,
    connections: number,
    lookup = new SharedLookup(),
    connector: MakeConnector | null = null,
  ) {
    this.#clock = clock;
    this.#lookup = lookup;
    this.#connections = connections;
    this.#connector = connector;
  }

  /** Loads the HTTP library ahead of the first attempt. */
  static async load(): Promise<void> {
    await import('undici');
  }

  /** The library is loaded with the first attempt. */
  #load(): Promise<HttpLibrary> {
    this.#loading ??= import('undici').then((library) => {
      this.#library = library;
      return library;
    });
    return this.#loading;
  }

  #poolOf(origin: string, library: HttpLibrary): Pool {
    const pool = new library.Pool(origin, {
      ...this.#options(library),
      connections: this.#connections,
      factory: (url, options: Client.Options) => counted(new library.Client(url, options)),
    });
    this.#pools.set(origin, pool);
    // Its requests then fail, as on connections that `close` has closed.
    if (this.#is_closed) void pool.destroy();
    return pool;
  }

  /** Sends one request on a connection of its own. */
  #sendAlone(
    origin: string,
    library: HttpLibrary,
    request: Dispatcher.DispatchOptions,
    exchange: Exchange,
  ): void {
    const client = new library.Client(origin, this.#options(library));
    this.#alone.add(client);
    client.dispatch(request, exchange);
    void (this.#is_closed ? client.destroy() : client.close()).finally(() => this.#alone.delete(client));
  }

  #options({ buildConnector }: HttpLibrary): Client.Options {
    return {
      pipelining: 1,
      allowH2: false,
      // Whatever the environment says: the built programs leave the other parser out.
      useMilo: false,
      maxHeaderSize: RESPONSE_HEADERS_MAX_BYTES,
      // One deadline holds for the whole attempt; the library's own would start anew in each phase.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: this.#connector
        ? this.#connector(buildConnector({ timeout: 0, allowH2: false }))
        : limited(this.#clock, buildConnector({ timeout: 0, allowH2: false, lookup: this.#lookup.lookup })),
    };
  }

  /** See `Transport.send`. */
  send({ url, headers, body }: SignedRequest, timeout_ms: number): Promise<AttemptResult> {
    const target = this.#target?.url === url ? this.#target : this.#aimAt(url);
    const { origin, path } = target;
    if (this.#lookup.refusesLiteral(target.hostname)) return Promise.resolve(refused(target));
    return new Promise((resolve) => {
      const request = { path, method: 'POST', headers, body } as const;
      const again = () => this.#sendAlone(origin, this.#library as HttpLibrary, request, exchange);
      const exchange = new Exchange(this.#clock, timeout_ms, target, this.#lookup, resolve, again);
      const dispatch = (library: HttpLibrary) => {
        const pool = this.#pools.get(origin) ?? this.#poolOf(origin, library);
        pool.dispatch(request, exchange);
      };
      if (this.#library) dispatch(this.#library);
      else void this.#load().then(dispatch);
    });
  }

  #aimAt(url: string): RequestTarget {
    const { origin, pathname, search, hostname, port: given, protocol } = new URL(url);
    const port = Number(given || (protocol === 'https:' ? 443 : 80));
    this.#target = { url, origin, path: pathname + search, query: search.slice(1), hostname, port };
    return this.#target;
  }

  /** See `Transport.close`. */
  async close(): Promise<void> {
    this.#is_closed = true;
    await this.#loading;
    await Promise.all([...this.#pools.values(), ...this.#alone].map((each) => each.destroy()));
  }
}

/** Tells each exchange over `client` which connection it uses. */
function counted(client: Client): Client {
  const connection: UsedConnection = { answers: 0 };
  client.on('disconnect', () => {
    connection.answers = 0;
  });
  const dispatch = client.dispatch.bind(client);
  client.dispatch = (options: Dispatcher.DispatchOptions, exchange: Dispatcher.DispatchHandler) => {
    (exchange as Exchange).over(connection);
    return dispatch(options, exchange);
  };
  return client;
}

/** An attempt at an address that may not be dialled. */
function refused(target: Target): AttemptResult {
  const error_detail = blockedDetail(target);
  return { status: null, error: 'blocked', error_detail, retry_after: null, response_body: null };
}

/** Limits how long `connector` may take: it has no limit of its own, and returns the socket that it connects. */
function limited(clock: Clock, connector: Connector): Connector {
  const time = runTime(clock);
  return (target, done) => {
    const timer = time.after(CONNECT_TIMEOUT_MS, () => {
      socket?.destroy(Object.assign(new Error('no connection in time'), { code: CONNECT_TIMEOUT }));
    });
    const socket = connector(target, (...result) => {
      timer.cancel();
      done(...result);
    }) as Socket | undefined;
  };
}
