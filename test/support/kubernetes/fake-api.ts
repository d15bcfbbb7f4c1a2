import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { selfSigned } from '../certificate.ts';
import { scratchFolder } from '../scratch.ts';
import { manifestPolicies } from './manifest-policies.ts';

/** A request as the server got it. */
export interface Asked {
  method: string;
  path: string;
  /** `pods`, `secrets` …: the kind in the path. */
  kind: string;
  query: URLSearchParams;
  /** What form of answer it asked for. */
  accept: string;
  body: Stored;
}

interface Stored {
  metadata?: {
    name?: string;
    labels?: Record<string, string>;
    annotations?: object;
    resourceVersion?: string;
  };
  spec?: { resourceAttributes?: object; volumes?: object[]; initContainers?: object[] };
}

/** An answer to a request instead of the usual one; null: the usual one. */
export type Odd = (asked: Asked, response: ServerResponse) => boolean;

interface Watch {
  kind: string;
  query: URLSearchParams;
  response: ServerResponse;
}

const NAMESPACE = 'here';

/** Ends an answer with an error as Kubernetes writes it. */
export function refuse(response: ServerResponse, code: number, reason: string, message: string): true {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ kind: 'Status', metadata: {}, status: 'Failure', reason, message, code }));
  return true;
}

/**
 * An HTTPS server that keeps objects as an API server does, schedules nothing, and answers otherwise where `odd` does: what a
 * real one answers only in the hands of a proxy, of a version, or of a moment.
 */
export class FakeApi {
  readonly kubeconfig: string;
  readonly asked: Asked[] = [];
  odd: Odd = () => false;
  /** The network policies of its namespace: those of the manifests. */
  policies = manifestPolicies();
  readonly #objects = new Map<string, Stored>();
  /** Open watches, which are told of what is made, changed and removed. */
  readonly #watches = new Set<Watch>();
  /** What has happened: a watch that begins at no version that this server gave is told all removals. */
  readonly #deleted: { key: string; object: Stored }[] = [];
  #version = 1;

  private constructor(port: number, ca: string) {
    this.kubeconfig = join(scratchFolder(), 'kubeconfig');
    const cluster = {
      server: `https://127.0.0.1:${port}`,
      'certificate-authority-data': Buffer.from(ca).toString('base64'),
    };
    const content = {
      'current-context': 'it',
      clusters: [{ name: 'fake', cluster }],
      users: [{ name: 'me', user: { token: 'secret-token' } }],
      contexts: [{ name: 'it', context: { cluster: 'fake', user: 'me', namespace: NAMESPACE } }],
    };
    writeFileSync(this.kubeconfig, stringify(content), { mode: 0o600 });
  }

  /** Starts one that ends with the test. */
  static async start(): Promise<FakeApi> {
    const { key, cert } = selfSigned('IP:127.0.0.1');
    let api: FakeApi | null = null;
    const server = createServer({ key, cert }, (request, response) => void api?.answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    api = new FakeApi((server.address() as AddressInfo).port, cert);
    return api;
  }

  /** `kind/name` of everything that is there. */
  names(): string[] {
    return [...this.#objects.keys()].sort();
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams: query } = new URL(request.url ?? '', 'https://api');
    const [kind = '', name] = pathname.replace(/^.*?\/namespaces\/[^/]+\//, '').split('/');
    const body = request.method === 'GET' ? {} : ((await json(request)) as Stored);
    const { accept = '' } = request.headers;
    const method = request.method ?? '';
    const asked = { method, path: pathname, kind: kind || 'reviews', query, accept, body };
    this.asked.push(asked);
    if (this.odd(asked, response)) return;
    const send = (value: object) => void response.end(JSON.stringify(value));
    if (pathname.endsWith('selfsubjectaccessreviews'))
      return send({ metadata: {}, status: { allowed: true } });
    const key = `${kind}/${name ?? body.metadata?.name}`;
    if (request.method === 'POST') return send(this.#made(key, body, query.has('dryRun')));
    if (request.method === 'GET' && name === undefined) {
      if (query.has('watch')) {
        const watch: Watch = { kind, query, response };
        this.#watches.add(watch);
        response.on('close', () => this.#watches.delete(watch));
        response.flushHeaders();
        for (const { key: gone, object } of this.#deleted) this.#tell('DELETED', gone, object, [watch]);
        return;
      }
      const items = kind === 'networkpolicies' ? this.policies : this.#listed(kind, query);
      return send({ metadata: { resourceVersion: String(this.#version) }, items });
    }
    const found = this.#objects.get(key);
    if (found === undefined) return void refuse(response, 404, 'NotFound', `${key} not found`);
    if (request.method === 'DELETE') {
      this.#objects.delete(key);
      this.#deleted.push({ key, object: found });
      this.#tell('DELETED', key, found);
    }
    if (request.method === 'PATCH') {
      const { annotations, resourceVersion } = body.metadata ?? {};
      if (resourceVersion !== undefined && resourceVersion !== found.metadata?.resourceVersion) {
        return void refuse(response, 409, 'Conflict', `${key} has been modified`);
      }
      found.metadata = { ...found.metadata, ...(annotations ? { annotations } : {}) };
      found.metadata.resourceVersion = String(this.#version++);
      this.#tell('MODIFIED', key, found);
    }
    send(found);
  }

  /** The watches that are open. */
  get watches(): number {
    return this.#watches.size;
  }

  /** Tells open watches of an object, where they have asked for such. */
  #tell(type: string, key: string, object: Stored, watches: Iterable<Watch> = this.#watches): void {
    for (const { kind, query, response } of watches) {
      if (!key.startsWith(`${kind}/`) || !isChosen(object, query)) continue;
      response.write(`${JSON.stringify({ type, object })}\n`);
    }
  }

  #listed(kind: string, query: URLSearchParams): Stored[] {
    return [...this.#objects].flatMap(([key, each]) =>
      key.startsWith(`${kind}/`) && isChosen(each, query) ? [each] : [],
    );
  }

  #made(key: string, body: Stored, is_dry_run: boolean): object {
    const metadata = {
      ...body.metadata,
      uid: `${key}-${this.#version}`,
      resourceVersion: String(this.#version++),
    };
    const made = { ...body, metadata, status: {} };
    if (is_dry_run) return made;
    this.#objects.set(key, made);
    this.#tell('ADDED', key, made);
    return made;
  }
}

/** Whether a query's selectors choose an object. */
function isChosen({ metadata: { name, labels = {} } = {} }: Stored, query: URLSearchParams): boolean {
  const [, named] = /^metadata\.name=(.*)$/.exec(query.get('fieldSelector') ?? '') ?? [];
  const wanted = (query.get('labelSelector') ?? '').split(',').filter(Boolean);
  const pairs = Object.entries(labels).map((pair) => pair.join('='));
  const has = (each: string) => each in labels || pairs.includes(each);
  const is_chosen = wanted.every((each) => (each.startsWith('!') ? !has(each.slice(1)) : has(each)));
  return is_chosen && (named === undefined || named === name);
}
