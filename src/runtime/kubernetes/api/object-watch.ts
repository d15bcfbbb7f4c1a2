import { type Clock, runTime, sleep } from '../../../base/clock.ts';
import { type Backoff, backoffMs } from '../../../contract/backoff.ts';
import { ApiError } from '../../../contract/errors.ts';
import { type ClusterClient, ClusterRefusal, type Form } from './cluster-client.ts';
import type { KubernetesObject } from './objects.ts';

/**
 * How long one watch lasts, in s. The server marks shortly before its end how far it has come (a bookmark), so that the next
 * begins there; and a connection that is gone without a word is found out by then.
 */
const WATCH_S = 30;
/** How much later than that the end may come, in ms. */
const END_WITHIN_MS = 5_000;
/** How long what was heard last is believed, in ms: a watch, its end, and one failed try. */
const BELIEVED_MS = WATCH_S * 1000 + 2 * END_WITHIN_MS;
/** The waits after failures: many replicas must not list at once for ever. */
const BACKOFF: Backoff = { base_ms: 500, max_ms: 10_000, jitter: 0.5 };

/** What an `ObjectWatch` follows, and what it keeps of it. */
export interface ObjectWatchParts<Kind extends KubernetesObject, Kept> {
  client: ClusterClient;
  clock: Clock;
  /** Of the objects' list, with its selector. */
  path: string;
  form: Form;
  /** How many objects an answer may have: no list may hold up the thread that parses it. */
  page: number;
  /** What is kept of an object; the rest of it is forgotten. */
  keep: (object: Kind) => Kept;
  /** Told of what may have changed; null: there is, or was, none. */
  onChange?: (name: string, now: Kept | null, before: Kept | null) => void;
}

/**
 * Objects of the cluster, followed: listed once, a page at a time, and from then on told by one watch after another. What is
 * known is as old as the last word of the API server; what needs the truth asks for the one object. The official client's
 * informer lists everything in one answer and keeps all of each object, and comes with sixteen packages.
 * Source: Kubernetes, "API concepts: efficient detection of changes".
 */
export class ObjectWatch<Kind extends KubernetesObject, Kept> {
  readonly #parts: ObjectWatchParts<Kind, Kept>;
  readonly #over = new AbortController();
  #running: Promise<void> | null = null;
  #kept = new Map<string, Kept>();
  /** From where the next watch begins; null: all has to be listed. */
  #version: string | null = null;
  #heard_ms = Number.NEGATIVE_INFINITY;
  /** Why the last try has failed; null while one is under way or has not. */
  #failure: unknown = null;
  #next = Promise.withResolvers<void>();

  constructor(parts: ObjectWatchParts<Kind, Kept>) {
    this.#parts = parts;
  }

  /** Whether `start` was called. */
  get is_started(): boolean {
    return this.#running !== null;
  }

  /** Begins to follow. Idempotent. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends it, for good. Idempotent. */
  async stop(): Promise<void> {
    this.#over.abort();
    await this.#running;
  }

  /** What is known, by name; begins to follow if nobody has. Throws `unavailable` where the API server has not been heard lately. */
  async known(): Promise<ReadonlyMap<string, Kept>> {
    this.start();
    const { clock } = this.#parts;
    if (clock.monotonicMs() - this.#heard_ms > BELIEVED_MS) {
      if (this.#failure !== null) throw this.#failure;
      await this.#next.promise;
    }
    return this.#kept;
  }

  async #run(): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#over;
    for (let failures = 0; !signal.aborted; ) {
      try {
        if (this.#version === null) await this.#list();
        const began_ms = clock.monotonicMs();
        const is_heard = await this.#follow(this.#version ?? '');
        // One that ends at once and says nothing is not asked for again at once.
        failures = is_heard || clock.monotonicMs() - began_ms >= END_WITHIN_MS ? 0 : failures + 1;
      } catch (error) {
        failures += 1;
        if (isTooOld(error)) this.#version = null;
        this.#fail(asUnavailable(error));
      }
      if (failures > 0 && !signal.aborted)
        await sleep(clock, backoffMs(failures, BACKOFF, Math.random()), signal);
    }
    this.#fail(new ApiError('unavailable', 'The manager stops.'));
  }

  async #list(): Promise<void> {
    const { client, path, form, page, keep } = this.#parts;
    const kept = new Map<string, Kept>();
    let version = '';
    for await (const { items, metadata } of client.pages<Kind>(path, { page, form })) {
      for (const object of items) kept.set(object.metadata.name, keep(object));
      version = metadata.resourceVersion;
      this.#over.signal.throwIfAborted();
    }
    const before = this.#kept;
    this.#kept = kept;
    this.#version = version;
    const { onChange } = this.#parts;
    for (const [name, each] of before) if (!kept.has(name)) onChange?.(name, null, each);
    for (const [name, each] of kept) onChange?.(name, each, before.get(name) ?? null);
    this.#hear();
  }

  /** Follows one watch to its end; whether it said anything. Throws what `isTooOld` knows where all has to be listed again. */
  async #follow(version: string): Promise<boolean> {
    const { client, clock, path, form } = this.#parts;
    const over = new AbortController();
    const end = () => over.abort();
    this.#over.signal.addEventListener('abort', end);
    const timer = runTime(clock).after(WATCH_S * 1000 + END_WITHIN_MS, end);
    let is_heard = false;
    try {
      const asked = { form, timeout_s: WATCH_S, onOpen: () => this.#hear() };
      for await (const { type, object } of client.watch<Kind>(path, version, over.signal, asked)) {
        if (type === 'ERROR') throw refusalIn(object);
        is_heard = true;
        this.#hear();
        this.#version = object.metadata.resourceVersion;
        if (type !== 'BOOKMARK') this.#take(type === 'DELETED' ? null : object, object.metadata.name);
      }
      if (over.signal.aborted && !this.#over.signal.aborted) throw new Error('its watch does not end');
      return is_heard;
    } finally {
      timer.cancel();
      this.#over.signal.removeEventListener('abort', end);
      over.abort();
    }
  }

  #take(object: Kind | null, name: string): void {
    const kept = this.#kept;
    const before = kept.get(name) ?? null;
    const now = object === null ? null : this.#parts.keep(object);
    if (now === null) kept.delete(name);
    else kept.set(name, now);
    this.#parts.onChange?.(name, now, before);
  }

  #hear(): void {
    this.#heard_ms = this.#parts.clock.monotonicMs();
    this.#failure = null;
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  #fail(failure: unknown): void {
    this.#failure = failure;
    // Nobody may be asking.
    this.#next.promise.catch(() => {});
    this.#next.reject(failure);
    this.#next = Promise.withResolvers();
  }
}

/** The version is older than what the server remembers. Source: Kubernetes, "410 Gone responses". */
function isTooOld(error: unknown): boolean {
  return error instanceof ClusterRefusal && error.status === 410;
}

/** What the server says in a watch instead of going on, which is a `Status`. */
function refusalIn(status: unknown): ClusterRefusal {
  const { code, reason, message } = status as { code?: unknown; reason?: unknown; message?: unknown };
  return new ClusterRefusal(typeof code === 'number' ? code : 0, String(reason ?? ''), String(message ?? ''));
}

function asUnavailable(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const { message } = error as Error;
  return new ApiError('unavailable', `The Kubernetes API is not followed (${message}).`, {
    retry_after_s: 1,
  });
}
