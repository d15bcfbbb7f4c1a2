import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { kernelRandom } from '../../base/entropy.ts';
import { isCrossSite } from '../../base/http/browser-headers.ts';
import { hostLines } from '../../base/http/host-lines.ts';
import { consoleFiles, type PageAnswer, type PageFiles, servedBy } from '../../base/http/page-files.ts';
import { HEADERS_TIMEOUT_MS } from '../../contract/defaults.ts';
import { ApiError, errorBody } from '../../contract/errors.ts';
import type { DaemonContext } from '../context.ts';
import { EXIT, type ExitCode, Failure, reason } from '../failure.ts';
import { answersDaemon, passRequest, passSocket } from './pass.ts';

const HOST = '127.0.0.1';
const PATH_BYTES = 24;

/** How the console is served. */
export interface ConsoleOptions {
  /** 0 picks a free one. */
  port: number;
  /** Shows the page to its user; called with its URL. */
  open: (url: string) => void;
}

/**
 * Serves the console for one daemon on loopback until `interrupted`, below a path that nobody can guess: who knows the URL
 * has all rights over the daemon, whose token stays here. Contract section 7, "Console".
 */
export async function serveConsole(
  { daemon, link, out, json }: DaemonContext,
  { port, open }: ConsoleOptions,
  interrupted: AbortSignal,
): Promise<ExitCode> {
  const files = consoleFiles();
  if (files.is_empty) throw new Failure(EXIT.failed, 'the console is not part of this build');
  // A daemon that does not answer, or a token that it does not take, is told before anything is served.
  await daemon.GET('/api/v1/sandbox');
  const secret = kernelRandom(PATH_BYTES).toString('base64url');
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: 0 });
  const gate = () => new Gate(secret, (server.address() as AddressInfo).port);
  server.on('request', (request, response) => {
    const path = gate().admit(request);
    if (path === null) return refuse(response);
    void answer(request, response, path).catch(() => response.destroy());
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const path = gate().admit(request);
    if (path === null || !path.startsWith('api/v1/')) return void socket.destroy();
    void passSocket(link, path.slice('api/v1'.length), { request, socket, head });
  });
  const answer = async (request: IncomingMessage, response: ServerResponse, path: string) => {
    if (path === 'healthz') return void response.writeHead((await answersDaemon(daemon)) ? 200 : 503).end();
    if (path.startsWith('api/v1/')) return passRequest(link, path.slice('api/v1'.length), request, response);
    page(files, path, request, response);
  };
  return new Promise((resolve, reject) => {
    server.on('error', (error) => reject(new Failure(EXIT.failed, `cannot listen: ${reason(error)}`)));
    server.listen(port, HOST, () => {
      const { port: taken } = server.address() as AddressInfo;
      const url = `http://${HOST}:${taken}/${secret}/console/`;
      const lines = json
        ? [JSON.stringify({ url })]
        : [`The console of ${link.shown} is at`, '', `  ${url}`, ''];
      out.lines(lines).then(() => open(url), reject);
    });
    interrupted.addEventListener('abort', () => {
      server.close(() => resolve(EXIT.ok));
      server.closeAllConnections();
    });
  });
}

/** Who may ask: a browser's page of this very address, or its user who opens the page. */
class Gate {
  readonly #secret: Buffer;
  readonly #hosts: string[];

  constructor(secret: string, port: number) {
    this.#secret = Buffer.from(secret);
    this.#hosts = [`${HOST}:${port}`, `localhost:${port}`];
  }

  /** The path and query below the secret one; null if the request is not admitted. */
  admit({ url = '', headers, rawHeaders, method }: IncomingMessage): string | null {
    const { host = '', origin, 'sec-fetch-mode': mode } = headers;
    if (!this.#hosts.includes(host) || hostLines(rawHeaders) !== 1) return null;
    if (origin !== undefined && origin !== `http://${host}`) return null;
    const [, secret = '', path = ''] = /^\/([^/?#]*)\/([^#]*)$/.exec(url) ?? [];
    if (!this.#isSecret(secret) || /(^|\/)\.\.?(\/|$)|%2e|%2f|\\/i.test(path.split('?')[0] as string))
      return null;
    // A link from elsewhere may open the page, and do nothing else.
    const opens = method === 'GET' && mode === 'navigate' && path.startsWith('console/');
    return isCrossSite(headers) && !opens ? null : path;
  }

  #isSecret(text: string): boolean {
    const given = Buffer.from(text);
    return given.length === this.#secret.length && timingSafeEqual(given, this.#secret);
  }
}

function page(
  files: PageFiles,
  path: string,
  { method, headers }: IncomingMessage,
  response: ServerResponse,
): void {
  const [name = ''] = path.split('?');
  const { 'accept-encoding': accepted, 'if-none-match': if_none_match } = headers;
  const accept_encoding = Array.isArray(accepted) ? accepted.join() : accepted;
  const answer: PageAnswer | null =
    name === 'console/program.json'
      ? servedBy('daemon')
      : name.startsWith('console/')
        ? files.answer(name.slice('console/'.length), { accept_encoding, if_none_match })
        : null;
  if (answer === null || (method !== 'GET' && method !== 'HEAD')) {
    refuse(response);
    return;
  }
  response.writeHead(answer.status, answer.headers).end(method === 'HEAD' ? undefined : answer.body);
}

function refuse(response: ServerResponse): void {
  const body = JSON.stringify(errorBody(new ApiError('not_found')));
  response.writeHead(404, { 'content-type': 'application/json', connection: 'close' }).end(body);
}
