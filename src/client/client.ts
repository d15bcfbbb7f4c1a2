import { type ClientOptions, HttpClient } from './http-client.ts';
import type { paths as DaemonPaths } from './openapi/daemon-api.ts';
import type { paths as ManagerPaths } from './openapi/manager-api.ts';

export { SandboxdError, type SandboxdErrorCode } from './error.ts';
export type { ClientOptions } from './http-client.ts';
export type { AnswerOf, CallOptions, RawBody } from './routes.ts';
export type { DaemonPaths, ManagerPaths };

/** A client of `sandbox-manager`. */
export type ManagerClient = HttpClient<ManagerPaths>;

/** A client of one `sandboxd`. */
export type DaemonClient = HttpClient<DaemonPaths>;

/**
 * A client of `sandbox-manager`. Every call gives the `data` of its answer and throws a `SandboxdError` otherwise:
 * `manager.POST('/api/v1/sandboxes', { body: { config: { ttl: 3600 } } })`. Contract section 7.
 */
export function createManagerClient(options: ClientOptions): ManagerClient {
  return new HttpClient(options);
}

/** A client of `sandboxd`, by default of the sandbox that the caller is in. Contract section 4. */
export function createDaemonClient(options: Partial<ClientOptions> = {}): DaemonClient {
  return new HttpClient({ url: 'http://localhost:49983', ...options });
}
