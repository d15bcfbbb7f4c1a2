import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import type { Clock } from '../../../base/clock.ts';
import { ApiError } from '../../../contract/errors.ts';
import { readUndeliveredApart } from '../../../outbox/sqlite/undelivered/hand-over-process.ts';
import type { HandOverTrust } from '../../runtime.ts';
import { BEGIN_FILE, HAND_OVER_END, KEEPER_PATHS, RUN_FOLDER } from './keeper-protocol.ts';
import { packFolder, readOutboxCopy, stateDir, unpackFolder, writeOutbox } from './volume-files.ts';

/** Where a keeper's volumes are mounted. */
export interface KeeperPlaces {
  control: string;
  volume: string;
}

/** What the manager asks a keeper for beside the daemon's own API. */
export class KeeperRoutes {
  readonly #places: KeeperPlaces;
  readonly #clock: Clock;
  /** The hand-over that is being read: there is one reader at a time, which locks the state. */
  #reading: { response: ServerResponse; over: Promise<unknown> } | null = null;

  constructor(places: KeeperPlaces, clock: Clock) {
    this.#places = places;
    this.#clock = clock;
  }

  /** Answers a request; an error after the head cuts the answer off. Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#answer(`${request.method} ${request.url}`, request, response);
      if (!response.writableEnded) response.end();
    } catch (error) {
      if (response.headersSent) return void response.destroy();
      const { code, message } = error as NodeJS.ErrnoException;
      const status = error instanceof ApiError ? error.status : 500;
      response.writeHead(status).end(JSON.stringify({ code: code ?? 'internal_error', message }));
    }
  }

  async #answer(asked: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { control, volume } = this.#places;
    switch (asked) {
      case `POST ${KEEPER_PATHS.hand_over}`:
        return this.#handOverLast((await json(request)) as HandOverTrust & { sandbox_id: string }, response);
      case `GET ${KEEPER_PATHS.work}`:
        return packFolder(volume, 'work', response);
      case `PUT ${KEEPER_PATHS.work}`:
        return unpackFolder(volume, 'work', request);
      case `GET ${KEEPER_PATHS.root}`:
        return packFolder(volume, 'root', response);
      case `PUT ${KEEPER_PATHS.root}`:
        return unpackFolder(volume, 'root', request);
      case `GET ${KEEPER_PATHS.outbox}`:
        readOutboxCopy(volume)
          .on('error', () => response.destroy())
          .pipe(response);
        return new Promise((resolve) => void response.once('close', resolve));
      case `PUT ${KEEPER_PATHS.outbox}`:
        return writeOutbox(volume, request);
      case `POST ${KEEPER_PATHS.begin}`:
        return writeFileSync(join(control, RUN_FOLDER, BEGIN_FILE), '');
      default:
        throw new ApiError('not_found');
    }
  }

  /** Who asks last is handed over to: who asked before may be gone without a word. */
  async #handOverLast(
    trust: HandOverTrust & { sandbox_id: string },
    response: ServerResponse,
  ): Promise<void> {
    const before = this.#reading;
    before?.response.destroy();
    const reading = Promise.resolve(before?.over).then(() => this.#handOver(trust, response));
    this.#reading = { response, over: reading.catch(() => {}) };
    return reading;
  }

  /** The sandbox's processes must have ended. */
  async #handOver(trust: HandOverTrust & { sandbox_id: string }, response: ServerResponse): Promise<void> {
    const state_dir = stateDir(this.#places.volume);
    const send = async (value: object | string) => {
      // What is closed already says so no more.
      if (!response.destroyed && !response.write(`${JSON.stringify(value)}\n`)) {
        await new Promise<void>((resolve) => {
          response.once('drain', resolve).once('close', resolve);
        });
      }
      if (response.destroyed) throw new Error('the manager has gone');
    };
    if (state_dir === null) {
      const trouble = 'the state directory and its records are missing';
      await send({ records: [], lost_records: 0, set_aside: 0, trouble });
    } else {
      for await (const page of readUndeliveredApart({ ...trust, state_dir }, this.#clock)) await send(page);
    }
    await send(HAND_OVER_END);
  }
}
