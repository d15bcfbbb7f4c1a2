import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { connect as connectTls } from 'node:tls';
import { type Clock, runTime, sleep } from '../../base/clock.ts';
import { ApiError, ERROR_CODES } from '../../contract/errors.ts';
import type { HandOverTrust, UndeliveredPage } from '../runtime.ts';
import {
  CONTROL_PROTOCOL,
  HAND_OVER_END,
  KEEPER_PATHS,
  KEEPER_PORT,
  KEEPER_PROTOCOL,
  KEEPER_TLS,
  KEY_IDENTITY,
  type KeeperFailure,
} from './keeper/keeper-protocol.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** A tunnel may be idle for days: what has forgotten it on the way shows by this. */
const KEEP_ALIVE_MS = 30_000;
const REACHED_WITHIN_MS = 30_000;
const REACH_POLL_MS = 20;

/** Where a keeper is, and the key that it and its manager know. */
export interface KeeperAddress {
  host: string;
  key: Buffer;
  port?: number;
}

/** A connection to the daemon beside a keeper, half-open; rejects with the system's error, or that of the handshake. */
export function connectDaemon(address: KeeperAddress, clock: Clock): Promise<Socket> {
  return connect(address, CONTROL_PROTOCOL, clock);
}

function connect(
  { host, key, port = KEEPER_PORT }: KeeperAddress,
  protocol: string,
  clock: Clock,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connectTls({
    ...KEEPER_TLS,
    ...{ host, port, ALPNProtocols: [protocol], allowHalfOpen: true },
    pskCallback: () => ({ psk: key, identity: KEY_IDENTITY }),
    // There is no certificate: who does not have the key does not get this far.
    checkServerIdentity: () => undefined,
  });
  const giveUp = () => socket.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' }));
  const timer = runTime(clock).after(CONNECT_TIMEOUT_MS, giveUp);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  socket.on('error', reject);
  const onClose = () => reject(new Error('the keeper has closed the connection'));
  socket.once('close', onClose);
  socket.once('secureConnect', () => {
    socket.off('close', onClose);
    resolve(socket);
  });
  return promise.finally(() => timer.cancel());
}

/** What a keeper does beside passing on to its daemon. Failures are errors of the catalogue. */
export class KeeperClient {
  readonly #address: KeeperAddress;
  readonly #clock: Clock;

  constructor(address: KeeperAddress, clock: Clock) {
    this.#address = address;
    this.#clock = runTime(clock);
  }

  /** Waits until the keeper listens, which is soon after its container has begun. Throws `internal_error`. */
  async untilReached(): Promise<void> {
    const until_ms = this.#clock.monotonicMs() + REACHED_WITHIN_MS;
    for (;;) {
      try {
        return void (await connect(this.#address, KEEPER_PROTOCOL, this.#clock)).destroy();
      } catch (error) {
        if (this.#clock.monotonicMs() >= until_ms) throw noKeeper(error);
      }
      await sleep(this.#clock, REACH_POLL_MS);
    }
  }

  /** The records that the ended daemon had not delivered. */
  async *handOver(trust: HandOverTrust & { sandbox_id: string }): AsyncGenerator<UndeliveredPage> {
    const answer = await this.#ask('POST', KEEPER_PATHS.hand_over, JSON.stringify(trust));
    try {
      for await (const line of createInterface({ input: answer })) {
        const page = JSON.parse(line) as UndeliveredPage | typeof HAND_OVER_END;
        if (page === HAND_OVER_END) return;
        yield page;
      }
    } finally {
      answer.destroy();
    }
    throw new ApiError('internal_error', 'The hand-over was cut off.');
  }

  /**
   * Copies the volume of this keeper's sandbox, which is held, to that of another, whose daemon has not begun.
   * `persistent_root`: with what it has changed of its image.
   */
  async copyTo(child: KeeperClient, persistent_root: boolean): Promise<void> {
    const { root, work, outbox } = KEEPER_PATHS;
    for (const path of [...(persistent_root ? [root] : []), work, outbox]) {
      await child.#put(path, await this.#ask('GET', path));
    }
  }

  /** Lets the daemon begin. */
  async begin(): Promise<void> {
    (await this.#ask('POST', KEEPER_PATHS.begin)).resume();
  }

  async #put(path: string, source: IncomingMessage): Promise<void> {
    (await this.#ask('PUT', path, source)).resume();
  }

  /** Sends a request over a connection of its own; resolves with an answer that is a success. */
  async #ask(method: string, path: string, body: string | Readable = ''): Promise<IncomingMessage> {
    const socket = await connect(this.#address, KEEPER_PROTOCOL, this.#clock).catch((error) => {
      throw noKeeper(error);
    });
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const headers = { host: 'keeper', 'transfer-encoding': 'chunked' };
    const outgoing = httpRequest({ method, path, headers, createConnection: () => socket });
    outgoing.on('error', (error) => reject(noKeeper(error))).once('response', resolve);
    // Without either, where it changes to another protocol.
    outgoing.once('close', () => reject(noKeeper(new Error('no answer'))));
    if (typeof body === 'string') outgoing.end(body);
    else await pipeline(body, outgoing).catch((error) => reject(noKeeper(error)));
    const answer = await promise;
    if (answer.statusCode === 200) return answer;
    const { code, message } = (await json(answer).catch(() => ({}))) as Partial<KeeperFailure>;
    const known = ERROR_CODES.find((each) => each === code);
    if (known !== undefined) throw new ApiError(known, message);
    throw Object.assign(new Error(message ?? `the keeper answered ${answer.statusCode}`), { code });
  }
}

function noKeeper(error: unknown): ApiError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new ApiError('internal_error', `The sandbox's keeper does not answer (${code ?? message}).`);
}
