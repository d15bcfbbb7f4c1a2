import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpApp } from '../../base/http/app.ts';
import { bareAnswer, bareResponse } from '../../base/http/errors.ts';
import type { Router } from '../../base/http/listener.ts';
import type { RequestMetrics } from '../../base/http/request-metrics.ts';
import type { Log } from '../../base/log.ts';
import { turns } from '../../base/loop-turns.ts';
import { ApiError } from '../../contract/errors.ts';
import type { ControlToken } from '../control-token.ts';
import { Listeners } from '../listeners.ts';
import type { StartGate } from '../start-gate.ts';
import { Guard } from './guard.ts';
import { DirectPublish, type PublishCore } from './publish/direct-publish.ts';

/** Answered if the application cannot be created, for example without free descriptors. The next request retries. */
const UNAVAILABLE = new ApiError('internal_error', 'The API could not be loaded.');

/** The slice of the daemon's core that its API is served with. */
export interface LocalApiCore extends PublishCore {
  readonly token: ControlToken;
  /** Holds requests until the daemon can serve them. */
  readonly gate: StartGate;
  /** Whether the start waits for the disk: requests then pass the closed gate, to be refused by their routes. */
  readonly is_waiting_for_disk: boolean;
}

/** What a local API is made of. */
export interface LocalApiParts {
  host: string;
  /** 0 picks a free port. */
  port: number;
  requests: RequestMetrics;
  log: Log;
  /** Creates the application, on the first request; `prepare` adds the hooks that run before every route. */
  createApp: (prepare: (app: HttpApp) => void) => Promise<HttpApp>;
}

/** The daemon's API: its listeners, the gate and the guard before its routes, and the application behind them. */
export class LocalApi {
  readonly listeners = new Listeners();
  readonly #core: LocalApiCore;
  readonly #parts: LocalApiParts;
  readonly #app: LazyApp;
  readonly #guard: Guard;
  readonly #router: Router;

  constructor(core: LocalApiCore, parts: LocalApiParts) {
    this.#core = core;
    this.#parts = parts;
    const { listeners } = this;
    const { host, requests, log } = parts;
    this.#app = new LazyApp(() => parts.createApp((app) => this.#prepare(app)));
    this.#guard = new Guard({
      host,
      port: () => listeners.port,
      token: core.token,
      is_control: listeners.isControl,
    });
    this.#router = new DirectPublish({ app: this.#app, core, guard: this.#guard, listeners, requests, log });
  }

  /** Listens on the TCP addresses. Throws StartError if one is in use. */
  start(): Promise<void> {
    return this.listeners.listen(this.#router, this.#parts.host, this.#parts.port);
  }

  /** Also listens on the control socket. Throws StartError. */
  listenOnSocket(path: string): Promise<void> {
    return this.listeners.listenOnSocket(this.#router, path);
  }

  /** Creates the application ahead of the first request. */
  async load(): Promise<void> {
    await this.#app.load();
  }

  /** Stops listening and closes every connection. Idempotent. */
  stop(): Promise<void> {
    return this.listeners.stop();
  }

  /** The base URL, without a path. */
  get url(): string {
    const { addresses, port } = this.listeners;
    const [address = '127.0.0.1'] = addresses;
    return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
  }

  #prepare(app: HttpApp): void {
    const core = this.#core;
    const guard = this.#guard;
    this.listeners.observe(app);
    app.addHook('onRequest', (request, _reply, done) => {
      if (core.gate.is_open || core.is_waiting_for_disk || guard.isEarly(request)) {
        guard.check(request);
        return done();
      }
      void core.gate
        .passed()
        .then(() => guard.check(request))
        .then(() => done(), done);
    });
    app.addHook('preValidation', ({ routeOptions }, _reply, done) => {
      if (routeOptions.config.is_light) done();
      else turns.take(done);
    });
  }
}

/** Loads and creates the application on the first request, so that a daemon starts sooner and an idle one stays small. */
export class LazyApp implements Router {
  readonly #make: () => Promise<HttpApp>;
  #app: HttpApp | null = null;
  #making: Promise<HttpApp> | null = null;

  /** `make` loads and creates the application; it is called again after a failure. */
  constructor(make: () => Promise<HttpApp>) {
    this.#make = make;
  }

  /** Answers a request, once the application is there. */
  readonly routing = (request: IncomingMessage, response: ServerResponse): void => {
    if (this.#app) this.#app.routing(request, response);
    else void this.#routeLater(request, response);
  };

  async #routeLater(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      (await this.load()).routing(request, response);
    } catch {
      const { socket } = request;
      socket.end(bareResponse(bareAnswer(UNAVAILABLE.status, UNAVAILABLE)));
    }
  }

  /** The methods allowed for a target; empty if the application cannot be created. */
  readonly methodsOf = (target: string): string[] | Promise<string[]> => {
    return this.#app
      ? this.#app.methodsOf(target)
      : this.load().then(
          (app) => app.methodsOf(target),
          () => [],
        );
  };

  /** Creates the application if there is none yet. Throws the error of a failure; the next call retries. */
  load(): Promise<HttpApp> {
    this.#making ??= this.#make().then(
      (app) => {
        this.#app = app;
        return app;
      },
      (error) => {
        this.#making = null;
        throw error;
      },
    );
    return this.#making;
  }
}
