import type { FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import { type HttpApp, withStreamedBodies } from '../../base/http-app.ts';
import { isUpgrade } from '../../base/http-listener.ts';
import { CatalogueError } from '../../contract/errors.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { callerOf, demand } from '../auth.ts';
import { runningSandbox } from '../auto-resume.ts';
import { refusal } from '../operations.ts';
import { passThrough } from '../pass-through.ts';
import type { Sandboxes } from '../sandboxes.ts';

const PATH = '/api/v1/sandboxes/:sandbox_id';
const METHODS: HTTPMethods[] = ['GET', 'POST', 'DELETE'];

/** What the routes that are passed through need. */
export interface PassThroughParts {
  sandboxes: Sandboxes;
  runtime: Runtime;
  clock: Clock;
}

/** The routes of a sandbox's own daemon. Source: contract section 7, row `…/processes…, /webhook/deliveries…`. */
export async function registerPassThroughRoutes(app: HttpApp, parts: PassThroughParts): Promise<void> {
  await withStreamedBodies(app, (streamed) => {
    const pass = (path: string, summary: string, find: Find) => {
      const config = { scope: 'sandboxes:read' as const, doc: { summary } };
      for (const url of [`${PATH}${path}`, `${PATH}${path}/*`]) {
        streamed.route({
          method: METHODS,
          url,
          config,
          handler: (request, reply) => answer(parts, find, request, reply),
        });
      }
    };
    pass('/processes', "The process routes of the sandbox's daemon", (sandboxes, named, clock) =>
      runningSandbox(sandboxes, named, clock),
    );
    pass('/webhook/deliveries', "The delivery routes of the sandbox's daemon", async (sandboxes, named) => {
      const row = await sandboxes.get(named);
      if (row.status === 'running' || row.status === 'paused') return row;
      throw refusal({ refused: 'status', status: row.status });
    });
  });
}

type Find = (
  sandboxes: Sandboxes,
  named: { sandbox_id: string; team_id: string },
  clock: Clock,
) => Promise<unknown>;

async function answer(
  { sandboxes, runtime, clock }: PassThroughParts,
  find: Find,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const caller = callerOf(request);
  // Whoever is attached to a process can also write to it.
  const scope = request.method !== 'GET' || isUpgrade(request) ? 'write' : 'read';
  if (scope === 'write') demand(caller, 'sandboxes:write');
  const { sandbox_id } = request.params as { sandbox_id: string };
  const path = daemonPath(request.raw.url ?? '');
  await find(sandboxes, { sandbox_id, team_id: caller.team_id }, clock);
  const socket = runtime.controlSocket(sandbox_id);
  if (socket === null) {
    throw new CatalogueError('conflict', 'This runtime runs no daemon that could answer.');
  }
  await passThrough(request, reply, { socket, path, scope });
}

/** The path at the daemon: what follows the sandbox's id, as it was sent. */
function daemonPath(url: string): string {
  const rest = /^\/api\/v1\/sandboxes\/[^/]+(\/.*)$/.exec(url)?.[1];
  const [path = ''] = rest?.split('?') ?? [];
  const is_odd = path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment));
  if (rest === undefined || is_odd) throw new CatalogueError('not_found', 'There is no such path.');
  return `/api/v1${rest}`;
}
