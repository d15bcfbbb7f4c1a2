import type { Socket } from 'node:net';
import type { HttpApp } from '../../base/http/app.ts';
import { requestIds } from '../../base/http/request-ids.ts';
import type { RequestMetrics } from '../../base/http/request-metrics.ts';
import type { Log } from '../../base/log.ts';
import type { ControlToken } from '../control-token.ts';
import { Listeners } from '../listeners.ts';
import type { Publisher } from '../publisher.ts';
import type { StartGate } from '../start-gate.ts';
import { Guard } from './guard.ts';
import { LazyApp } from './lazy-app.ts';
import { DirectPublish } from './publish/direct-publish.ts';

/** What a local API is made of. */
export interface LocalApiParts {
  host: string;
  /** 0 picks a free port. */
  port: number;
  token: ControlToken;
  /** Holds requests until the daemon can serve them. */
  gate: StartGate;
  /** Whether requests pass the closed gate, to be refused by their routes. */
  isGateBypassed: () => boolean;
  /** See `Publisher.publish`. */
  publish: Publisher['publish'];
  requests: RequestMetrics;
  log: Log;
  /** Creates the application, on the first request; `prepare` adds the hooks that run before every route. */
  createApp: (prepare: (app: HttpApp) => void) => Promise<HttpApp>;
}

/** The daemon's API: its listeners, the gate and the guard before its routes, and the application behind them. */
export class LocalApi {
  readonly #parts: LocalApiParts;
  readonly #app: LazyApp;
  readonly #listeners: Listeners;
  readonly #guard: Guard;

  constructor(parts: LocalApiParts) {
    this.#parts = parts;
    const { host, token, gate, publish, requests, log } = parts;
    this.#app = new LazyApp(() => parts.createApp((app) => this.#prepare(app)));
    const listeners = new Listeners({
      routing: (request, response) => direct.routing(request, response),
      methodsOf: this.#app.methodsOf,
    });
    this.#listeners = listeners;
    this.#guard = new Guard({ host, port: () => listeners.port, token, is_control: listeners.isControl });
    const direct = new DirectPublish({
      app: this.#app,
      isOpen: () => gate.is_open,
      acceptsHost: this.#guard.acceptsHost,
      isControl: listeners.isControl,
      publish,
      nextId: requestIds(),
      connections: listeners.connections,
      requests,
      log,
    });
  }

  /** Listens on the TCP addresses. Throws StartError if one is in use. */
  start(): Promise<void> {
    return this.#listeners.listen(this.#parts.host, this.#parts.port);
  }

  /** Also listens on the control socket. Throws StartError. */
  listenOnSocket(path: string): Promise<void> {
    return this.#listeners.listenOnSocket(path);
  }

  /** Creates the application ahead of the first request. */
  async load(): Promise<void> {
    await this.#app.load();
  }

  /** Stops listening and closes every connection. Idempotent. */
  stop(): Promise<void> {
    return this.#listeners.stop();
  }

  /** The TCP port; 0 before `start`. */
  get port(): number {
    return this.#listeners.port;
  }

  /** The IP addresses that are currently bound. */
  get addresses(): string[] {
    return this.#listeners.addresses;
  }

  /** The base URL, without a path. */
  get url(): string {
    const [address = '127.0.0.1'] = this.addresses;
    return `http://${address.includes(':') ? `[${address}]` : address}:${this.port}`;
  }

  /** Whether a connection came over the control socket. */
  isControl(socket: Socket): boolean {
    return this.#listeners.isControl(socket);
  }

  #prepare(app: HttpApp): void {
    const { gate, isGateBypassed } = this.#parts;
    const guard = this.#guard;
    this.#listeners.observe(app);
    app.addHook('onRequest', (request, _reply, done) => {
      if (gate.is_open || isGateBypassed() || guard.isEarly(request)) {
        guard.check(request);
        return done();
      }
      void gate
        .passed()
        .then(() => guard.check(request))
        .then(() => done(), done);
    });
  }
}
