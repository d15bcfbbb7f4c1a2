import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { runTime, systemClock } from '../../../base/clock.ts';
import { ApiError } from '../../../contract/errors.ts';
import type { ClusterAccess } from './config-file.ts';
import type { KubernetesObject, ObjectList, WatchEvent } from './objects.ts';

/** How long the cluster's API may take to answer, in ms. */
const ANSWER_TIMEOUT_MS = 10_000;
const CONNECTIONS_MAX = 64;
/** Objects in one answer of the cluster, where they are small. */
export const LIST_PAGE = 500;
const MESSAGE_MAX = 1_024;

/** What of objects is answered: `whole`, or their `metadata` alone, whatever else they hold. */
export type Form = 'whole' | 'metadata';

/** Source: Kubernetes, "Metadata-only fetches". */
const ACCEPT = {
  whole: 'application/json',
  metadata: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
  list: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
};

/** How a watch is asked for. `timeout_s`: when the server ends it, having marked how far it came; missing: never. */
interface WatchOptions {
  form?: Form;
  timeout_s?: number;
  /** Called once the server has begun to answer. */
  onOpen?: () => void;
}

/** The cluster's API has refused a request. */
export class ClusterRefusal extends Error {
  readonly status: number;
  /** Kubernetes' own word, such as `AlreadyExists`. */
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/** Whether a refusal's message is that of a quota of the namespace. */
export function isQuota(message: string): boolean {
  return /exceeded quota/.test(message);
}

/** What is sent, and what is to be answered. */
interface ContentTypes {
  type?: string;
  accept?: string;
}

/** Requests of one namespace's objects. Each throws ClusterRefusal, and `unavailable` where the API does not answer. */
export class ClusterClient {
  readonly #access: ClusterAccess;
  readonly #agent: Agent;

  constructor(access: ClusterAccess) {
    this.#access = access;
    const { ca, client } = access;
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: CONNECTIONS_MAX,
      minVersion: 'TLSv1.2',
      ...(ca ? { ca } : {}),
      ...(client ?? {}),
    });
  }

  /** Whose objects it asks for. */
  get namespace(): string {
    return this.#access.namespace;
  }

  /** Closes its connections; later requests make new ones. */
  close(): void {
    this.#agent.destroy();
  }

  /** The path of a kind's objects in the namespace, or of one of them; `kind` may be followed by a query. `group`: of version 1. */
  path(kind: string, name?: string, group?: string): string {
    const root = group === undefined ? '/api/v1' : `/apis/${group}/v1`;
    const folder = `${root}/namespaces/${encodeURIComponent(this.#access.namespace)}/${kind}`;
    return name === undefined ? folder : `${folder}/${encodeURIComponent(name)}`;
  }

  /** The object at a path; null where there is none. */
  async get<Kind>(path: string): Promise<Kind | null> {
    return this.#orNull(this.send<Kind>('GET', path));
  }

  /** The same without its content, as of a secret that nobody needs to read. */
  async metadata(path: string): Promise<KubernetesObject | null> {
    return this.#orNull(this.send<KubernetesObject>('GET', path, undefined, { accept: ACCEPT.metadata }));
  }

  /** The objects at a path, which may have a query, as they are at one moment; `page`: how many are in an answer at most. */
  async *pages<Kind>(path: string, { page, form }: { page: number; form: Form }) {
    const first = `${path}${path.includes('?') ? '&' : '?'}limit=${page}`;
    const accept = form === 'metadata' ? ACCEPT.list : ACCEPT.whole;
    for (let asked = first; ; ) {
      const list = await this.#orNull(this.send<ObjectList<Kind>>('GET', asked, undefined, { accept }));
      if (list === null) return;
      yield { metadata: list.metadata, items: list.items ?? [] };
      const more = list.metadata.continue;
      if (!more) return;
      asked = `${first}&continue=${encodeURIComponent(more)}`;
    }
  }

  /** All of them at once, for lists that are short. */
  async list<Kind>(path: string, form: Form = 'whole'): Promise<Kind[]> {
    const all: Kind[] = [];
    for await (const { items } of this.pages<Kind>(path, { page: LIST_PAGE, form })) all.push(...items);
    return all;
  }

  /** Creates an object; refused with `AlreadyExists` if there is one of its name. */
  async create<Kind>(path: string, object: object): Promise<Kind> {
    return this.send<Kind>('POST', path, object);
  }

  /** Merges a change into an object; a `metadata.resourceVersion` in it must be the present one. Null where there is none. */
  async patch<Kind>(path: string, change: object): Promise<Kind | null> {
    return this.#orNull(this.send<Kind>('PATCH', path, change));
  }

  /** The same for a list of which entries are known by their names. Source: Kubernetes, "strategic merge patch". */
  async strategicPatch<Kind>(path: string, change: object): Promise<Kind> {
    return this.send<Kind>('PATCH', path, change, { type: 'application/strategic-merge-patch+json' });
  }

  /**
   * Asks for the removal of an object, after a grace period in seconds; with a version only if it has just that, and is
   * refused with `Conflict` otherwise. True if there was one.
   */
  async remove(path: string, given: { grace_s?: number; version?: string } = {}): Promise<boolean> {
    const { grace_s, version } = given;
    const options = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      propagationPolicy: 'Background',
      ...(grace_s === undefined ? {} : { gracePeriodSeconds: grace_s }),
      ...(version === undefined ? {} : { preconditions: { resourceVersion: version } }),
    };
    return (await this.#orNull(this.send('DELETE', path, options))) !== null;
  }

  /** Sends a request and reads the object of its answer. */
  async send<Kind>(method: string, path: string, body?: object, types: ContentTypes = {}): Promise<Kind> {
    return objectIn<Kind>(await this.#answer(method, path, body, types));
  }

  /** The JSON at a path that is no object of the cluster, as what a node says of itself. */
  async value(path: string): Promise<unknown> {
    return parsed(await this.#answer('GET', path));
  }

  async #answer(method: string, path: string, body?: object, types: ContentTypes = {}): Promise<string> {
    const over = new AbortController();
    const limit = runTime(systemClock).after(ANSWER_TIMEOUT_MS, () => over.abort());
    try {
      return await read(await this.open(method, path, body, over.signal, types));
    } finally {
      limit.cancel();
    }
  }

  /** What happens to objects after a version, until `signal`, the server, or a failure ends it. */
  async *watch<Kind>(
    path: string,
    version: string,
    signal: AbortSignal,
    { form = 'whole', timeout_s, onOpen }: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<Kind>> {
    const lasts = timeout_s === undefined ? '' : `&allowWatchBookmarks=true&timeoutSeconds=${timeout_s}`;
    const query = `${path.includes('?') ? '&' : '?'}watch=true&resourceVersion=${version}${lasts}`;
    const response = await this.open('GET', path + query, undefined, signal, { accept: ACCEPT[form] });
    try {
      onOpen?.();
      for await (const line of createInterface({ input: response })) {
        const event = parsed(line) as WatchEvent<Kind>;
        objectOf(event?.object);
        yield event;
      }
    } catch (error) {
      if (!signal.aborted) throw away(error);
    } finally {
      response.destroy();
    }
  }

  /** Sends a request; resolves with an answer that is a success. */
  async open(
    method: string,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
    types: ContentTypes = {},
  ): Promise<IncomingMessage> {
    const { accept = ACCEPT.whole } = types;
    const { type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' } = types;
    const token = this.#access.token();
    const content = body === undefined ? null : JSON.stringify(body);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const outgoing = httpsRequest(new URL(path, this.#access.server), {
      method,
      agent: this.#agent,
      signal,
      headers: {
        accept,
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(content === null ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(content) }),
      },
    });
    outgoing.on('error', (error) => reject(away(error))).once('response', resolve);
    // Without either, where it changes to another protocol.
    outgoing.once('close', () => reject(away(new Error('no answer'))));
    outgoing.end(content ?? undefined);
    const response = await promise;
    const { statusCode: status = 0 } = response;
    if (status >= 200 && status < 300) return response;
    throw refusal(status, await read(response));
  }

  async #orNull<Kind>(answer: Promise<Kind>): Promise<Kind | null> {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof ClusterRefusal && error.status === 404) return null;
      throw error;
    }
  }
}

/** The object of the cluster in an answer; whatever else answers there is not the API, or not the whole of an answer. */
function objectIn<Kind>(answer: string): Kind {
  return objectOf(parsed(answer)) as Kind;
}

function parsed(answer: string): unknown {
  try {
    return JSON.parse(answer);
  } catch {
    throw away(new Error('its answer is not JSON'));
  }
}

function objectOf(value: unknown): unknown {
  const { metadata } = (value ?? {}) as { metadata?: unknown };
  if (typeof metadata === 'object' && metadata !== null) return value;
  throw away(new Error('its answer is not an object of Kubernetes'));
}

async function read(response: IncomingMessage): Promise<string> {
  try {
    return await text(response);
  } catch (error) {
    throw away(error);
  }
}

function away(error: unknown): ApiError {
  const { code, message } = error as NodeJS.ErrnoException;
  const why = typeof code === 'string' ? code : message;
  return new ApiError('unavailable', `The Kubernetes API does not answer (${why}).`, { retry_after_s: 1 });
}

function refusal(status: number, answer: string): Error {
  if (status === 429 || status >= 500) return away(new Error(`HTTP ${status}`));
  const plain = new ClusterRefusal(status, '', `the Kubernetes API refuses with HTTP ${status}`);
  try {
    const { reason, message } = JSON.parse(answer) as { reason?: unknown; message?: unknown };
    if (status === 401 || typeof message !== 'string' || message === '') return plain;
    return new ClusterRefusal(
      status,
      String(reason ?? ''),
      message.slice(0, MESSAGE_MAX).replaceAll(/\s+/g, ' '),
    );
  } catch {
    return plain;
  }
}
