import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import { type HttpApp, withBytes } from '../../base/http/app.ts';
import { noRoute } from '../../base/http/errors.ts';
import { isUpgrade } from '../../base/http/listener.ts';
import { type Handlers, serve } from '../../base/http/serve.ts';
import { invalidField } from '../../contract/errors.ts';
import { PASSED_ROUTES, type PassedRoute } from '../../contract/routes/passed.ts';
import { requireFeature } from '../../runtime/daemon-requests.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Transfers } from '../transfer/transfers.ts';
import { daemonPath } from './daemon-path.ts';
import { passThrough } from './pass-through.ts';
import { configOf } from './routes.ts';
import { admitCall, type SandboxCallParts } from './sandbox-calls.ts';

/** What the passed-through routes need. */
export interface PassThroughParts extends SandboxCallParts {
  runtime: Runtime;
  clock: Clock;
  /** Counts what passes. */
  transfers: Pick<Transfers, 'open'>;
}

/** Serves the routes that are passed through to a sandbox's daemon. Source: contract section 7, row `…/processes…, /webhook/deliveries…`. */
export async function servePassed(app: HttpApp, parts: PassThroughParts): Promise<void> {
  const handlers = Object.entries<PassedRoute>(PASSED_ROUTES).map(([id, row]) => [
    id,
    ({ request, reply }: { request: FastifyRequest; reply: FastifyReply }) =>
      answer(parts, row, request, reply),
  ]);
  await withBytes(app, (routes) =>
    serve(
      routes,
      PASSED_ROUTES,
      Object.fromEntries(handlers) as Handlers<typeof PASSED_ROUTES>,
      (row: PassedRoute) => ({ ...configOf(row), takes_socket_token: isAnsweredByUpgrade(row) }),
    ),
  );
}

/** Whether a WebSocket alone answers. */
function isAnsweredByUpgrade({ status }: PassedRoute): boolean {
  return status === 101;
}

async function answer(
  parts: PassThroughParts,
  row: PassedRoute,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { access: scope, path: own_path, passed } = row.from;
  const { sandbox_id = '', ...parameters } = request.params as Record<string, string>;
  const path = daemonPath(own_path, parameters, request.raw.url ?? '');
  if (path === null) throw noRoute(request.method, request.raw.url);
  const is_upgrade = isAnsweredByUpgrade(row);
  if (isUpgrade(request) !== is_upgrade) {
    throw invalidField('Upgrade', is_upgrade ? 'must be websocket' : 'is not supported by this path');
  }
  const { runtime, transfers } = parts;
  const { needs, way } = passed;
  const { team_id } = await admitCall(parts, passed, sandbox_id, request, reply);
  if (needs !== undefined) await requireFeature(() => runtime.connect(sandbox_id), needs);
  const connect = () =>
    transfers.open({ sandbox_id, team_id, way, request }, () => runtime.connect(sandbox_id));
  await passThrough(request, reply, { connect, path, scope });
}
