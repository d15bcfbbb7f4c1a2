import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import { type HttpApp, takeBytes, withStreamedBodies } from '../../base/http/app.ts';
import { noRoute } from '../../base/http/errors.ts';
import { isUpgrade } from '../../base/http/listener.ts';
import { invalidField } from '../../contract/errors.ts';
import { requireFeature } from '../../runtime/daemon-requests.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Transfers } from '../transfer/transfers.ts';
import { passThrough } from './pass-through.ts';
import { daemonPath, PASSED_ROUTES, type PassedRoute } from './passed-routes.ts';
import { admitCall, type SandboxCallParts } from './sandbox-calls.ts';

const PATH = '/api/v1/sandboxes/:sandbox_id';

/** What the passed-through routes need. */
export interface PassThroughParts extends SandboxCallParts {
  runtime: Runtime;
  clock: Clock;
  /** Counts what passes. */
  transfers: Pick<Transfers, 'open'>;
}

/** Registers the routes that are passed through to a sandbox's daemon. Source: contract section 7, row `…/processes…, /webhook/deliveries…`. */
export async function registerPassThroughRoutes(app: HttpApp, parts: PassThroughParts): Promise<void> {
  const register = (routes: HttpApp, streamed: boolean) => {
    for (const route of PASSED_ROUTES.filter(({ is_streamed }) => is_streamed === streamed)) {
      const { method, path, scope, doc, is_upgrade } = route;
      routes.route({
        method,
        url: `${PATH}${path}`,
        config: { scope: `sandboxes:${scope}`, doc, takes_socket_token: is_upgrade },
        handler: (request, reply) => answer(parts, route, request, reply),
      });
    }
  };
  await withStreamedBodies(app, (routes) => register(routes, true));
  await app.register((routes, _options, registered) => {
    routes.removeAllContentTypeParsers();
    takeBytes(routes as unknown as HttpApp);
    register(routes as unknown as HttpApp, false);
    registered();
  });
}

async function answer(
  parts: PassThroughParts,
  route: PassedRoute,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { sandbox_id = '', ...parameters } = request.params as Record<string, string>;
  const path = daemonPath(route, parameters, request.raw.url ?? '');
  if (path === null) throw noRoute(request.method, request.raw.url);
  if (isUpgrade(request) !== route.is_upgrade) {
    throw invalidField('Upgrade', route.is_upgrade ? 'must be websocket' : 'is not supported by this path');
  }
  const { runtime, transfers } = parts;
  const { team_id } = await admitCall(parts, route, sandbox_id, request, reply);
  if (route.needs !== null) await requireFeature(() => runtime.connect(sandbox_id), route.needs);
  const connect = () =>
    transfers.open({ sandbox_id, team_id, way: route.way, request }, () => runtime.connect(sandbox_id));
  await passThrough(request, reply, { connect, path, scope: route.scope });
}
