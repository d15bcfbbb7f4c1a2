import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpApp } from '../base/http-app.ts';
import type { Router } from '../base/http-listener.ts';

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
    else void this.load().then((app) => app.routing(request, response));
  };

  /** Makes it ahead of the first request. */
  load(): Promise<HttpApp> {
    this.#making ??= this.#make().then((app) => {
      this.#app = app;
      return app;
    });
    return this.#making;
  }
}
