import { type Clock, sleep } from '../base/clock.ts';
import { createHttpApp, success } from '../base/http/app.ts';
import type { Log } from '../base/log.ts';
import { ApiError, StartError } from '../contract/errors.ts';
import { ApiServer } from './api/server.ts';
import { isAway } from './database/database-errors.ts';

const RETRY_MS = 500;
const RETRY_AFTER_S = 1;

interface Parts {
  clock: Clock;
  log: Log;
  /** Where the API is to be served. */
  host: string;
  port: number;
}

/**
 * A start while the database is away, or becomes so in the middle of it: the start waits for as long as that lasts, and
 * the API answers `unavailable` meanwhile. Everything else that a start refuses, such as a wrong password, it refuses
 * at once. Source: contract section 7, "/readyz".
 */
export class DatabaseWait {
  readonly #parts: Parts;
  readonly #stopped = new AbortController();
  #stand_in: ApiServer | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Repeats a step of the start until the database has answered it. Rejects with what else the step throws. */
  async until<Result>(step: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await step();
      } catch (error) {
        const cause = error instanceof StartError ? error.cause : error;
        if (!isAway(cause) || this.#stopped.signal.aborted) throw error;
        await this.#away((cause as Error).cause as Error);
      }
    }
  }

  /** Frees the address of the API. */
  async end(): Promise<void> {
    await this.#stand_in?.close();
    this.#stand_in = null;
  }

  /** Gives the start up: the step that waits throws. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.end();
  }

  async #away({ message }: Error): Promise<void> {
    const { clock, log, host, port } = this.#parts;
    if (!this.#stand_in) {
      log.warn({ reason: message }, 'the database is away; the start waits for it');
      this.#stand_in = await standIn(log, clock);
      await this.#stand_in.listen(host, port);
    }
    await sleep(clock, RETRY_MS, this.#stopped.signal);
  }
}

/** Alive, not ready, and nothing else. */
async function standIn(log: Log, clock: Clock): Promise<ApiServer> {
  const app = createHttpApp(log);
  app.get('/healthz', async () => success({ alive: true }));
  app.addHook('onRequest', async (request) => {
    if (request.url === '/healthz') return;
    throw new ApiError('unavailable', 'The database is away.', { retry_after_s: RETRY_AFTER_S });
  });
  const server = new ApiServer(app, clock);
  await app.ready();
  return server;
}
