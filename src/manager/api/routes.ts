import type { FastifyRequest } from 'fastify';
import type { HttpApp } from '../../base/http/app.ts';
import { type DocumentedRoute, openApiDocument, type RouteDoc } from '../../base/http/openapi.ts';
import type { Log } from '../../base/log.ts';
import { ApiError } from '../../contract/errors.ts';
import { isSandboxId } from '../../contract/sandboxes.ts';
import { reasonOf } from '../database/database-errors.ts';
import { transitionError } from '../sandboxes/operations.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    doc?: RouteDoc;
  }
}

/** Registers the routes of one subject. */
export type RouteRegistrar = (app: HttpApp) => void | Promise<void>;

/** Registers all routes of the manager, and the document that describes them. Source: contract section 7. */
export async function registerRoutes(app: HttpApp, registrars: readonly RouteRegistrar[]): Promise<void> {
  const routes: DocumentedRoute[] = [];
  app.addHook('onRoute', ({ url, method, schema, config }) => {
    if (!config?.doc) return;
    const { doc, scope, is_open } = config;
    routes.push({ url, method, schema, doc, scopes: is_open ? null : scope ? [scope] : [] });
  });
  app.addHook('onRequest', async (request) => demandId(request));
  for (const register of registrars) await register(app);
  const config = { is_open: true, doc: { summary: 'This OpenAPI document' } };
  let document: object | null = null;
  app.get('/openapi.json', { config }, async () => {
    document ??= openApiDocument('sandbox-manager', routes);
    return document;
  });
  await app.ready();
}

/** Throws `not_found` for an impossible id without asking the database, which cannot store every text of a path. */
function demandId({ params, routeOptions }: FastifyRequest): void {
  const { sandbox_id } = params as { sandbox_id?: string };
  if (sandbox_id === undefined || routeOptions.config.is_open || isSandboxId(sandbox_id)) return;
  throw transitionError({ refused: 'not_found', status: null });
}

/** Logs why the database or the runtime could not be used; the answer does not say. */
export function logTrouble(app: HttpApp, log: Log): void {
  app.addHook('onError', async (request, _reply, error) => {
    if (!(error instanceof ApiError) || error.code !== 'unavailable') return;
    log.warn({ request_id: request.id, reason: reasonOf(error) }, 'a request was refused');
  });
}
