import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpApp } from '../../base/http/app.ts';
import { bareAnswer, bareResponse } from '../../base/http/errors.ts';
import type { Router } from '../../base/http/listener.ts';
import { ApiError } from '../../contract/errors.ts';

/** Answered if the application cannot be created, for example without free descriptors. The next request retries. */
const UNAVAILABLE = new ApiError('internal_error', 'The API could not be loaded.');

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
