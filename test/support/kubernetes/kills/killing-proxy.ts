import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request as httpsRequest, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { parse, stringify } from 'yaml';
import { ClusterClient } from '../../../../src/runtime/kubernetes/api/cluster-client.ts';
import type { ClusterAccess } from '../../../../src/runtime/kubernetes/api/config-file.ts';
import type { Pod } from '../../../../src/runtime/kubernetes/api/objects.ts';
import { SANDBOX } from '../../../../src/runtime/kubernetes/manifests.ts';
import { selfSigned } from '../../certificate.ts';
import { KeeperStandIns } from './keeper-stand-ins.ts';
import { KillSteps } from './kill-steps.ts';

const CHANGED = /\/(pods|persistentvolumeclaims|secrets)(?:\/([^/]+))?(?:\/(resize))?$/;

/** What `KillingProxy.start` is given. */
export interface KillingProxyOptions {
  /** The access that the manager has without it. */
  kubeconfig: string;
  /** The access of who may do anything. */
  admin: ClusterAccess;
  /** Where the access by way of the proxy is written. */
  path: string;
  /** The second number of the addresses of its keepers, unlike that of any other proxy. */
  net: number;
}

/** Stands between one manager and its cluster, the API server as well as all keepers, and kills the manager at a step. */
export class KillingProxy {
  readonly steps = new KillSteps();
  /** For each volume, by its uid: how many Pods with a daemon have been made on it. */
  readonly daemons = new Map<string, number>();
  readonly #access: ClusterAccess;
  readonly #client: ClusterClient;
  readonly #keepers: KeeperStandIns;
  readonly #certificate = selfSigned('IP:127.0.0.1');
  readonly #server: Server;
  readonly #agent: Agent;

  private constructor({ admin, net }: KillingProxyOptions) {
    this.#access = admin;
    this.#agent = new Agent(admin.ca ? { ca: admin.ca } : {});
    this.#client = new ClusterClient(admin);
    this.#keepers = new KeeperStandIns(this.#client, this.steps, net);
    this.#server = createServer(this.#certificate, (request, response) => {
      this.#answer(request, response).catch((error: Error) => {
        if (!response.destroyed) console.error(`the proxy cannot answer ${request.url}: ${error.message}`);
        response.destroy();
      });
    });
    // A manager must not meet connections that end by themselves.
    this.#server.keepAliveTimeout = 0;
  }

  static async start(options: KillingProxyOptions): Promise<KillingProxy> {
    const proxy = new KillingProxy(options);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    const content = parse(readFileSync(options.kubeconfig, 'utf8'));
    const { port } = proxy.#server.address() as AddressInfo;
    content.clusters[0].cluster = {
      server: `https://127.0.0.1:${port}`,
      'certificate-authority-data': Buffer.from(proxy.#certificate.cert).toString('base64'),
    };
    writeFileSync(options.path, stringify(content), { mode: 0o600 });
    return proxy;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await this.#keepers.stop();
    this.#agent.destroy();
    this.#client.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const step = this.#stepOf(request);
    if (step !== null && (await this.steps.kills(step, 'before'))) return void response.destroy();
    const upstream = await this.#ask(request, body, response);
    const { statusCode = 502, headers } = upstream;
    if (new URL(request.url ?? '', 'https://api').searchParams.get('watch') === 'true') {
      response.writeHead(statusCode, { 'content-type': headers['content-type'] }).flushHeaders();
      for await (const line of createInterface({ input: upstream })) {
        response.write(`${JSON.stringify(await this.#moved(JSON.parse(line)))}\n`);
      }
      return void response.end();
    }
    const answer = await buffer(upstream);
    if (step?.startsWith('POST pods ') && statusCode === 201) this.#count(JSON.parse(answer.toString()));
    const is_done = statusCode < 300;
    if (step !== null && !is_done) this.steps.refused(step);
    if (step !== null && is_done && (await this.steps.kills(step, 'after'))) return void response.destroy();
    response.writeHead(statusCode, { 'content-type': headers['content-type'] });
    const is_json = headers['content-type']?.startsWith('application/json');
    response.end(is_json ? JSON.stringify(await this.#moved(JSON.parse(answer.toString()))) : answer);
  }

  async #ask(request: IncomingMessage, body: Buffer, response: ServerResponse): Promise<IncomingMessage> {
    const { host: _host, connection: _connection, ...headers } = request.headers;
    const outgoing = httpsRequest(new URL(request.url ?? '', this.#access.server), {
      ...{ method: request.method, headers, agent: this.#agent },
    });
    response.once('close', () => outgoing.destroy());
    outgoing.end(body);
    const [upstream] = (await once(outgoing, 'response')) as [IncomingMessage];
    outgoing.on('error', () => {});
    return upstream;
  }

  /** Null for a request that changes no Pod, claim or secret. */
  #stepOf({ method, url = '' }: IncomingMessage): string | null {
    const { pathname, searchParams } = new URL(url, 'https://api');
    const [, kind, name, part] = CHANGED.exec(pathname) ?? [];
    if (method === 'GET' || kind === undefined || searchParams.has('dryRun')) return null;
    const whose = name?.endsWith('-reader') ? ' of the reader' : '';
    return this.steps.begin(`${method} ${kind}${part ? `/${part}` : ''}${whose}`);
  }

  #count({ metadata, spec }: Pod): void {
    if (!spec.containers?.some(({ name }) => name === SANDBOX)) return;
    const { ownerReferences = [] } = metadata as { ownerReferences?: { uid: string }[] };
    for (const { uid } of ownerReferences) this.daemons.set(uid, (this.daemons.get(uid) ?? 0) + 1);
  }

  /** The same object, list or line of a watch, with the addresses of stand-ins in the place of Pods' own. */
  // biome-ignore lint/suspicious/noExplicitAny: it is passed on as it is, but for one field.
  async #moved(value: any): Promise<unknown> {
    if (value?.object) return { ...value, object: await this.#moved(value.object) };
    if (Array.isArray(value?.items)) {
      return { ...value, items: await Promise.all(value.items.map((item: unknown) => this.#moved(item))) };
    }
    if (!value?.status?.podIP || !value.spec?.containers) return value;
    return { ...value, status: { ...value.status, podIP: await this.#keepers.addressOf(value) } };
  }
}
