import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyReply } from 'fastify';
import { type Clock, runTime, sleep } from '../../base/clock.ts';
import type { HttpApp } from '../../base/http/app.ts';
import { createListener, isUpgrade } from '../../base/http/listener.ts';
import { StartError } from '../../contract/errors.ts';
import { type ManagerCall, makeCall } from './call.ts';
import { TeamConnections } from './team-connections.ts';

/** How long a stop waits for requests in progress. */
const STOP_MS = 5_000;
const STOP_POLL_MS = 20;
/** After so long without a byte the kernel asks whether the other side is still there. */
const KEEP_ALIVE_MS = 60_000;

/** The HTTP server of the manager's API. */
export class ApiServer {
  /** Calls the API from inside this program. */
  readonly call: ManagerCall;
  readonly #connections = new TeamConnections();
  readonly #server: Server;
  readonly #clock: Clock;
  /** Replies that are not complete. */
  readonly #replies = new Set<FastifyReply>();

  constructor(app: HttpApp, clock: Clock) {
    this.#clock = clock;
    this.#server = createListener(app, this.#connections);
    this.call = makeCall(this.#server);
    // A client that has vanished must not keep a sandbox from being idle for ever.
    this.#server.on('connection', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
    app.addHook('onRequest', async (request, reply) => {
      this.#replies.add(reply);
      // A reply that becomes a WebSocket has no `onResponse`.
      if (isUpgrade(request)) request.raw.socket.once('close', () => this.#replies.delete(reply));
    });
    app.addHook('preHandler', async (request) => {
      this.#connections.requestComplete(request.raw.socket, request.caller?.team_id ?? null);
    });
    app.addHook('onResponse', async (request, reply) => {
      this.#replies.delete(reply);
      this.#connections.answered(request.raw.socket);
    });
  }

  /** The URL of the API; valid after `listen`. */
  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
  }

  /** Listens on the address; throws StartError if it is not available. */
  async listen(host: string, port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => {
        const why = error.code === 'EADDRINUSE' ? 'is in use by another program' : error.message;
        reject(new StartError(`--listen ${host}:${port} ${why}`, 1, error));
      });
      this.#server.listen({ host, port }, resolve);
    });
  }

  /** Accepts no further connections, waits up to 5 s for requests in progress, and closes every connection. */
  async close(): Promise<void> {
    this.#server.close();
    const end_ms = runTime(this.#clock).monotonicMs() + STOP_MS;
    while (this.#isAnswering() && runTime(this.#clock).monotonicMs() < end_ms)
      await sleep(runTime(this.#clock), STOP_POLL_MS);
    this.#connections.close();
  }

  /** Answers that have begun may be cut off: they are streams that their readers resume. */
  #isAnswering(): boolean {
    return [...this.#replies].some((reply) => !reply.sent && !reply.raw.headersSent);
  }
}
