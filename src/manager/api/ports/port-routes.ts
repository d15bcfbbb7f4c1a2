import { METHODS } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Clock, runTime } from '../../../base/clock.ts';
import { type HttpApp, withStreamedBodies } from '../../../base/http/app.ts';
import { isUpgrade } from '../../../base/http/listener.ts';
import { PORT_PROTOCOL, PORTS_PATH, portOf } from '../../../contract/control-socket.ts';
import { CONNECT_TIMEOUT_MS } from '../../../contract/defaults.ts';
import { ApiError, invalidField } from '../../../contract/errors.ts';
import { MANAGER_ROUTES } from '../../../contract/routes/manager.ts';
import { openTunnel, TunnelRefused } from '../../../runtime/egress/open-tunnel.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { exchange } from '../exchange.ts';
import { noAnswer } from '../pass-through.ts';
import type { PassThroughParts } from '../pass-through-routes.ts';
import { type ApiHandlers, configOf } from '../routes.ts';
import { admitCall } from '../sandbox-calls.ts';
import { type PortPlace, portAnswerHeaders, portRequestHeaders, portUpgradeHead } from './port-headers.ts';

/** The slashes of a request's path before that of the server: `/api/v1/sandboxes/{id}/ports/{port}` has six. */
const PREFIX_SEGMENTS = 7;
/** Only running sandboxes answer, and it keeps them from being idle. */
const CALL = { answered_by: 'running', is_use: true } as const;
/** What the daemon's answer may take beyond the time that it has to connect. */
const ANSWER_GRACE_MS = 1_000;

/** The routes that lead to HTTP servers in sandboxes. Source: contract section 7, "Ports". */
export function portHandlers(parts: PassThroughParts) {
  return {
    callPort: ({ request, reply }) => answer(parts, request, reply),
    callPortPath: ({ request, reply }) => answer(parts, request, reply),
  } satisfies Partial<ApiHandlers>;
}

/** Registers the same for the methods that rows cannot name. */
export async function registerPortMethods(app: HttpApp, parts: PassThroughParts): Promise<void> {
  const { callPort, callPortPath } = MANAGER_ROUTES;
  const named: readonly string[] = ['CONNECT', ...callPort.method];
  const others = METHODS.filter((method) => !named.includes(method));
  const unknown = others.filter((method) => !app.supportedMethods.includes(method));
  for (const method of unknown) app.addHttpMethod(method, { hasBody: true });
  await withStreamedBodies(app, async (routes) => {
    for (const row of [callPort, callPortPath]) {
      const handler = (request: FastifyRequest, reply: FastifyReply) => answer(parts, request, reply);
      routes.route({
        method: others,
        url: row.path,
        config: { ...configOf(row), is_passed_on: row.is_passed_on },
        handler,
      });
    }
  });
}

async function answer(parts: PassThroughParts, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { runtime, clock, transfers } = parts;
  const { sandbox_id = '', port: text = '' } = request.params as Record<string, string>;
  const port = portIn(text);
  if (isUpgrade(request)) checkUpgrade(request);
  const { team_id } = await admitCall(parts, CALL, sandbox_id, request, reply);
  const connect = () => connectTo(runtime, clock, { sandbox_id, port }, request);
  const socket: Duplex = await transfers.open({ sandbox_id, team_id, way: 'ports', request }, connect);
  const path = serverTarget(request.raw.url ?? '');
  const place: PortPlace = {
    port,
    prefix: MANAGER_ROUTES.callPort.path.replace(':sandbox_id', sandbox_id).replace(':port', text),
    host: request.headers.host ?? '',
  };
  await exchange(request, reply, {
    connection: { createConnection: () => socket },
    path,
    is_duplex: true,
    headers: portRequestHeaders(request, place),
    answerHeaders: (head) => portAnswerHeaders(head, path, place),
    upgradeHead: portUpgradeHead,
    noAnswer: () => refusal(port, 'The server does not answer with HTTP'),
  });
}

/** Bytes after the head of such a request are the WebSocket's. */
function checkUpgrade({ method, headers }: FastifyRequest): void {
  if (method !== 'GET') throw invalidField('Upgrade', 'is allowed with GET only');
  const { 'transfer-encoding': encoding, 'content-length': length = '0' } = headers;
  if (encoding !== undefined || Number(length) > 0) {
    throw invalidField('body', 'is not allowed with an upgrade');
  }
}

/** Connects to a port of a running sandbox. Throws `conflict`, `forbidden`, `bad_gateway` or `unavailable`. */
async function connectTo(
  runtime: Runtime,
  clock: Clock,
  { sandbox_id, port }: { sandbox_id: string; port: number },
  { raw }: FastifyRequest,
): Promise<Socket> {
  if (!runtime.hasOwnPorts(sandbox_id)) {
    const why =
      "This sandbox has no network of its own, and so no ports that could be told from the machine's.";
    throw new ApiError('conflict', why);
  }
  const over = new AbortController();
  const giveUp = () => over.abort();
  const timer = runTime(clock).after(CONNECT_TIMEOUT_MS + ANSWER_GRACE_MS, giveUp);
  raw.socket.once('close', giveUp);
  try {
    const request = { path: `${PORTS_PATH}/${port}`, protocol: PORT_PROTOCOL };
    const socket = await openTunnel(() => runtime.connect(sandbox_id), request, over.signal);
    if (raw.socket.destroyed) socket.destroy();
    return socket;
  } catch (error) {
    throw tunnelError(port, error);
  } finally {
    timer.cancel();
    raw.socket.off('close', giveUp);
  }
}

/** What the daemon's refusal means; its own words are not passed on. */
function tunnelError(port: number, error: unknown): ApiError {
  const status = error instanceof TunnelRefused ? error.status : 0;
  if (status === 403) return new ApiError('forbidden', "The daemon's own port cannot be reached.", { port });
  if (status === 502) return refusal(port, 'Nobody listens');
  return noAnswer();
}

function refusal(port: number, why: string): ApiError {
  return new ApiError('bad_gateway', `${why} on port ${port} of the sandbox.`, { port });
}

/** The port that a path names. Throws `invalid_request`. */
export function portIn(text: string): number {
  const port = portOf(text);
  if (port === null) throw invalidField('port', 'must be a whole number from 1 to 65535');
  return port;
}

/**
 * The target of a request at the server, character by character as the caller sent it: what follows the port. `url` is
 * the request's own target, which has been routed to a port.
 */
export function serverTarget(url: string): string {
  const [, path = '', query = ''] = /^(?:https?:\/\/[^/?#]*)?([^?#]*)(\?[^#]*)?/i.exec(url) ?? [];
  const segments = path.split('/').slice(PREFIX_SEGMENTS);
  return `/${segments.join('/')}${query}`;
}
