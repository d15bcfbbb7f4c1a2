import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyReply } from 'fastify';
import { type Clock, sleep } from '../../base/clock.ts';
import type { HttpApp } from '../../base/http/app.ts';
import { createListener, isUpgrade } from '../../base/http/listener.ts';
import { StartError } from '../../contract/errors.ts';
import { TeamConnections } from './team-connections.ts';

/** How long a stop leaves the requests under way. */
const STOP_MS = 5_000;
const STOP_LOOK_MS = 20;

/** The address on which the manager's API is served. */
export class ApiServer {
  readonly #connections = new TeamConnections();
  readonly #server: Server;
  readonly #clock: Clock;
  /** Of requests whose answer has not begun. */
  readonly #replies = new Set<FastifyReply>();

  constructor(app: HttpApp, clock: Clock) {
    this.#clock = clock;
    this.#server = createListener(app, this.#connections);
    app.addHook('onRequest', async (request, reply) => {
      this.#replies.add(reply);
      // Nothing tells the end of an answer that becomes a WebSocket.
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

  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
  }

  /** Takes the address; throws StartError where it cannot be had. */
  async listen(host: string, port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => {
        const why = error.code === 'EADDRINUSE' ? 'is in use by another program' : error.message;
        reject(new StartError(`--listen ${host}:${port} ${why}`, 1, error));
      });
      this.#server.listen({ host, port }, resolve);
    });
  }

  /** Takes no further connection, leaves requests under way some time, and ends every connection. */
  async close(): Promise<void> {
    this.#server.close();
    const end_ms = this.#clock.monotonicMs() + STOP_MS;
    while (this.#isAnswering() && this.#clock.monotonicMs() < end_ms) await sleep(this.#clock, STOP_LOOK_MS);
    this.#connections.close();
  }

  /** Answers that have begun may be cut: they are streams, which their readers take up again. */
  #isAnswering(): boolean {
    return [...this.#replies].some((reply) => !reply.sent && !reply.raw.headersSent);
  }
}
