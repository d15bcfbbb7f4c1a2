import pRetry from 'p-retry';
import { type Clock, sleep } from '../base/clock.ts';
import { createHttpApp, success } from '../base/http/app.ts';
import type { Log } from '../base/log.ts';
import { OWN_WAITS } from '../base/own-waits.ts';
import { ApiError, StartError } from '../contract/errors.ts';
import { ApiServer } from './api/server.ts';
import { isAway, reasonOf } from './database/database-errors.ts';

const RETRY_MS = 500;
const RETRY_AFTER_S = 1;

interface Parts {
  clock: Clock;
  log: Log;
  /** The address of the API. */
  host: string;
  port: number;
}

/**
 * Lets a start wait while the database is unreachable; the API answers `unavailable` meanwhile. Any other failure, such as
 * a wrong password, ends the start at once. Source: contract section 7, "/readyz".
 */
export class DatabaseWait {
  readonly #parts: Parts;
  readonly #stopped = new AbortController();
  #stand_in: ApiServer | null = null;
  #is_away = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Repeats a step of the start until the database answers. Rejects with any other error of the step. */
  async until<Result>(step: () => Promise<Result>): Promise<Result> {
    const onFailedAttempt = async ({ error }: { error: Error }) => {
      const cause = error instanceof StartError ? error.cause : error;
      if (!isAway(cause) || this.#stopped.signal.aborted) throw error;
      await this.#away(reasonOf(cause));
    };
    const result = await pRetry(step, { ...OWN_WAITS, onFailedAttempt });
    this.#back();
    return result;
  }

  #back(): void {
    if (this.#is_away) this.#parts.log.info('the database answers; the start goes on');
    this.#is_away = false;
  }

  /** Stops answering, so that the API can use the address. */
  async end(): Promise<void> {
    await this.#stand_in?.close();
    this.#stand_in = null;
  }

  /** Aborts the start: a waiting step rejects. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.end();
  }

  async #away(reason: string): Promise<void> {
    const { clock, log, host, port } = this.#parts;
    if (!this.#is_away) log.warn({ reason }, 'the database is unreachable; waiting for it before starting');
    this.#is_away = true;
    if (!this.#stand_in) {
      this.#stand_in = await standIn(log, clock);
      await this.#stand_in.listen(host, port);
    }
    await sleep(clock, RETRY_MS, this.#stopped.signal);
  }
}

/** A server that is alive and not ready. */
async function standIn(log: Log, clock: Clock): Promise<ApiServer> {
  const app = createHttpApp(log);
  app.get('/healthz', async () => success({ alive: true }));
  app.addHook('onRequest', async (request) => {
    if (request.url === '/healthz') return;
    throw new ApiError('unavailable', 'The database is unreachable.', { retry_after_s: RETRY_AFTER_S });
  });
  const server = new ApiServer(app, clock);
  await app.ready();
  return server;
}
