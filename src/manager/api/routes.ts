import type { FastifyContextConfig, FastifyRequest } from 'fastify';
import type { HttpApp } from '../../base/http/app.ts';
import { type DocumentedRoute, openApiDocument } from '../../base/http/openapi.ts';
import { type Handlers, serve } from '../../base/http/serve.ts';
import type { ErrorCode } from '../../contract/errors.ts';
import { isSandboxId } from '../../contract/ids.ts';
import { API_ROUTES, MANAGER_ROUTES } from '../../contract/routes/manager.ts';
import type { ManagerRoute } from '../../contract/routes/route.ts';
import { WEBHOOK_DOCS } from '../../contract/routes/webhook.ts';
import { noSandbox } from '../sandboxes/transitions.ts';

/** A handler for each route of the manager's own. */
export type ApiHandlers = Handlers<typeof MANAGER_ROUTES>;

/** Serves the routes of the manager's own, and the document of all. Source: contract section 7. */
export async function serveApi(app: HttpApp, handlers: Omit<ApiHandlers, 'getDocument'>): Promise<void> {
  let document: object | null = null;
  await serve<typeof MANAGER_ROUTES>(
    app,
    MANAGER_ROUTES,
    {
      ...handlers,
      async getDocument() {
        document ??= managerDocument();
        return document;
      },
    },
    configOf,
  );
}

/** What the hooks of the manager read of a row. */
export function configOf({ access, charge, unbuilt }: ManagerRoute): FastifyContextConfig {
  return { demands: access, charge, unbuilt };
}

/** Has the sandboxes of paths that name one checked; call it before the routes are there. */
export function checkSandboxIds(app: HttpApp): void {
  app.addHook('onRequest', async (request) => demandId(request));
}

/** Throws `not_found` for an impossible id without asking the database, which cannot store every text of a path. */
function demandId({ params, routeOptions }: FastifyRequest): void {
  const { sandbox_id } = params as { sandbox_id?: string };
  if (sandbox_id === undefined || routeOptions.config.demands === 'open' || isSandboxId(sandbox_id)) return;
  throw noSandbox();
}

/** The OpenAPI document of the manager's routes and of those that it passes through. */
export function managerDocument(): object {
  const routes = Object.entries<ManagerRoute>(API_ROUTES).map(([id, row]) => documented(id, row));
  return openApiDocument(PROGRAM, routes);
}

const PROGRAM = {
  title: 'sandbox-manager',
  description:
    'Claims, pauses, resumes, forks and deletes sandboxes, and passes requests through to their daemons.',
  security_schemes: {
    token: { type: 'http', scheme: 'bearer', description: 'a token of a team, with the scopes it needs' },
  },
  webhooks: WEBHOOK_DOCS,
};

const OPEN_ERRORS: readonly ErrorCode[] = ['invalid_request', 'internal_error'];
const ERRORS: readonly ErrorCode[] = [
  ...OPEN_ERRORS,
  'unauthorized',
  'forbidden',
  'too_many_requests',
  'unavailable',
];
const BODY_ERRORS: readonly ErrorCode[] = ['timeout', 'payload_too_large', 'unsupported_media_type'];

function documented(id: string, row: ManagerRoute): DocumentedRoute {
  const { access, charge, body, path } = row;
  if (access === 'open') return { id, row, security: [], errors: OPEN_ERRORS };
  const is_charged = charge !== 'none';
  const errors: ErrorCode[] = [...ERRORS];
  if (is_charged) errors.push('quota_exceeded');
  if (body !== undefined) errors.push(...BODY_ERRORS);
  if (path.includes(':sandbox_id')) errors.push('not_found');
  return { id, row, security: [{ token: [access] }], errors, is_charged };
}
