import type { RawData, WebSocket } from 'ws';
import type { Clock } from '../../../../base/clock.ts';
import { newId } from '../../../../base/ids.ts';
import { FILE_SUBSCRIPTIONS_MAX } from '../../../../contract/defaults.ts';
import { ApiError, errorBody, invalidField } from '../../../../contract/errors.ts';
import { parsePath, pathFields } from '../../../../files/byte-path.ts';
import type { Files } from '../../../../files/files.ts';
import { SocketHeartbeat } from '../../socket-heartbeat.ts';
import { Subscription, type SubscriptionLink } from './subscription.ts';
import type { WatchedTrees } from './watched-trees.ts';

/** Bytes that wait for the client at which it counts as too slow. */
const BEHIND_BYTES = 1024 * 1024;

const KEYS = {
  subscribe: ['action', 'path', 'path_base64', 'recursive'],
  unsubscribe: ['action', 'watch_id'],
};

/** What a connection works with. */
export interface WatchConnectionParts {
  clock: Clock;
  files: Files;
  trees: WatchedTrees;
}

/** A frame of a client, checked as far as its action. */
type Frame = Record<string, unknown> & { action: 'subscribe' | 'unsubscribe' };

/** One client of `/files/watch` and its subscriptions; all are freed when it closes. Source: contract section 4, "Files". */
export class WatchConnection implements SubscriptionLink {
  readonly #parts: WatchConnectionParts;
  readonly #socket: WebSocket;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #heartbeat: SocketHeartbeat;
  #handled: Promise<void> = Promise.resolve();
  #waiting: (() => void)[] = [];

  constructor(parts: WatchConnectionParts, socket: WebSocket) {
    this.#parts = parts;
    this.#socket = socket;
    this.#heartbeat = new SocketHeartbeat(parts.clock, socket);
    socket.on('error', () => {}); // 'close' follows.
    socket.on('message', (data) => {
      // One after another, and no more are read meanwhile.
      socket.pause();
      this.#handled = this.#handled.then(() => this.#handle(data)).finally(() => socket.resume());
    });
    socket.once('close', () => void this.#close());
  }

  isBehind(): boolean {
    return this.#socket.bufferedAmount > BEHIND_BYTES;
  }

  caughtUp(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#socket.bufferedAmount === 0) resolve();
      else this.#waiting.push(resolve);
    });
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message), () => {
      if (this.#socket.bufferedAmount > 0) return;
      for (const resolve of this.#waiting.splice(0)) resolve();
    });
  }

  onFailure(watch_id: string, error: unknown): void {
    void this.#subscriptions.get(watch_id)?.stop();
    this.#subscriptions.delete(watch_id);
    this.#refuse(error, watch_id);
  }

  async #handle(data: RawData): Promise<void> {
    try {
      const frame = parseFrame(data);
      if (frame.action === 'subscribe') await this.#subscribe(frame);
      else await this.#unsubscribe(frame);
    } catch (error) {
      this.#refuse(error);
    }
  }

  async #subscribe({ path: text, path_base64, recursive = false }: Frame): Promise<void> {
    if (text !== undefined && typeof text !== 'string') throw invalidField('path', 'must be a string');
    if (path_base64 !== undefined && typeof path_base64 !== 'string') {
      throw invalidField('path_base64', 'must be a string');
    }
    if (typeof recursive !== 'boolean') throw invalidField('recursive', 'must be true or false');
    if (this.#subscriptions.size >= FILE_SUBSCRIPTIONS_MAX) {
      throw new ApiError('too_many_requests', `At most ${FILE_SUBSCRIPTIONS_MAX} subscriptions are allowed.`);
    }
    const { files, trees } = this.#parts;
    const path = parsePath({ path: text, path_base64 }).replace(/(.)\/+$/, '$1');
    const real = await files.realDirectory(path);
    const watch_id = newId('watch_', this.#parts.clock.wallMs());
    const subscription = new Subscription({ watch_id, path, real, recursive, trees, link: this });
    this.#subscriptions.set(watch_id, subscription);
    await subscription.start().catch((error) => {
      this.#subscriptions.delete(watch_id);
      throw error;
    });
    this.send({ type: 'subscribed', watch_id, ...pathFields(path) });
  }

  async #unsubscribe({ watch_id }: Frame): Promise<void> {
    const subscription = this.#subscriptions.get(String(watch_id));
    if (!subscription)
      throw new ApiError('not_found', 'There is no such subscription.', { field: 'watch_id' });
    this.#subscriptions.delete(String(watch_id));
    await subscription.stop();
    this.send({ type: 'unsubscribed', watch_id });
  }

  #refuse(error: unknown, watch_id?: string): void {
    const known = error instanceof ApiError ? error : new ApiError('internal_error');
    this.send({
      type: 'error',
      ...(watch_id === undefined ? {} : { watch_id }),
      error: errorBody(known).error,
    });
  }

  async #close(): Promise<void> {
    this.#heartbeat.stop();
    await this.#handled;
    const open = [...this.#subscriptions.values()];
    this.#subscriptions.clear();
    await Promise.all(open.map((each) => each.stop()));
  }
}

function parseFrame(data: RawData): Frame {
  let frame: unknown;
  try {
    frame = JSON.parse(String(data));
  } catch {
    throw invalidField('frame', 'must be JSON');
  }
  if (typeof frame !== 'object' || frame === null || Array.isArray(frame)) {
    throw invalidField('frame', 'must be an object');
  }
  const { action } = frame as Record<string, unknown>;
  if (action !== 'subscribe' && action !== 'unsubscribe') {
    throw invalidField('action', 'must be subscribe or unsubscribe');
  }
  const unknown = Object.keys(frame).find((key) => !KEYS[action].includes(key));
  if (unknown !== undefined) throw invalidField(unknown, 'unknown field');
  return frame as Frame;
}
