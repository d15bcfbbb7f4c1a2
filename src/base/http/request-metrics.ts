import { Counter, Histogram, type Metric } from '../metrics.ts';
import type { HttpApp } from './app.ts';

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** The route of a request that leads to none. */
const NO_ROUTE = 'none';

/** Counts the answers of an application, by route and status, and their duration. Source: contract section 8. */
export class RequestMetrics {
  readonly #requests = new Counter('http_requests_total', 'Requests answered.', ['route', 'status']);
  readonly #seconds = new Histogram(
    'http_request_duration_seconds',
    'Time from the arrival of a request to the end of its answer.',
    SECONDS,
  );

  /** Counts every request of `app` from now on; call it before the routes are added. */
  count(app: HttpApp): void {
    app.addHook('onResponse', async (request, reply) => {
      const route = request.is404 ? NO_ROUTE : (request.routeOptions.url ?? NO_ROUTE);
      this.answered(route, reply.statusCode, reply.elapsedTime);
    });
  }

  /** Counts a request that was answered without the application. */
  answered(route: string, status: number, elapsed_ms: number): void {
    this.#requests.add([route, String(status)]);
    this.#seconds.observe(elapsed_ms / 1000);
  }

  /** The metrics, for the registry. */
  metrics(): Metric[] {
    return [this.#requests, this.#seconds];
  }
}
