import { type ClientOptions, HttpClient } from './http-client.ts';
import type { paths } from './openapi/daemon-api.ts';
import { Sandbox } from './sandbox.ts';

/** A client of one `sandboxd`. Contract section 4. */
export class DaemonClient extends HttpClient<paths> {
  /** Streams, files and pages of its sandbox. */
  readonly sandbox = new Sandbox(this as HttpClient<unknown>, null);
}

/** A client of `sandboxd`, by default of the sandbox that the caller is in. Contract section 4. */
export function createDaemonClient(options: Partial<ClientOptions> = {}): DaemonClient {
  return new DaemonClient({ url: 'http://localhost:49983', ...options });
}
