import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpApp } from '../../base/http/app.ts';
import { bareAnswer, bareResponse } from '../../base/http/errors.ts';
import type { Router } from '../../base/http/listener.ts';
import { ApiError } from '../../contract/errors.ts';

/** Where the application could not be made, as without free descriptors: the next request tries again. */
const UNAVAILABLE = new ApiError('internal_error', 'The API could not be loaded.');

/** The application, loaded and made with the first request: a daemon that nobody asks starts sooner and stays small. */
export class LazyApp implements Router {
  readonly #make: () => Promise<HttpApp>;
  #app: HttpApp | null = null;
  #making: Promise<HttpApp> | null = null;

  constructor(make: () => Promise<HttpApp>) {
    this.#make = make;
  }

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

  readonly methodsOf = (target: string): string[] | Promise<string[]> => {
    return this.#app
      ? this.#app.methodsOf(target)
      : this.load().then(
          (app) => app.methodsOf(target),
          () => [],
        );
  };

  /** Makes it ahead of the first request; what failed is tried again by the next call. */
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
