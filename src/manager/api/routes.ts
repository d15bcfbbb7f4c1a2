import type { FastifyRequest, RouteOptions } from 'fastify';
import type { HttpApp } from '../../base/http/app.ts';
import { type DocumentedRoute, openApiDocument } from '../../base/http/openapi.ts';
import { DOCUMENT_DOC } from '../../contract/documents/health-docs.ts';
import type { RouteDoc } from '../../contract/documents/route-doc.ts';
import { WEBHOOK_DOCS } from '../../contract/documents/webhook-docs.ts';
import type { ErrorCode } from '../../contract/errors.ts';
import { isSandboxId } from '../../contract/sandboxes.ts';
import { noSandbox } from '../sandboxes/transitions.ts';

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
  app.addHook('onRoute', (route) => {
    const { doc } = route.config ?? {};
    if (doc) routes.push(documented(route, doc));
  });
  app.addHook('onRequest', async (request) => demandId(request));
  for (const register of registrars) await register(app);
  const config = { is_open: true, doc: DOCUMENT_DOC };
  let document: object | null = null;
  app.get('/openapi.json', { config }, async () => {
    document ??= openApiDocument(PROGRAM, routes);
    return document;
  });
  await app.ready();
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

function documented({ url, method, schema, config }: RouteOptions, doc: RouteDoc): DocumentedRoute {
  const { scope, is_open } = config ?? {};
  if (is_open) return { url, method, schema, doc, security: [], errors: OPEN_ERRORS };
  // Operators' routes are not charged. Source: contract section 7, "Charging order".
  const is_charged = !url.startsWith('/internal/');
  const errors: ErrorCode[] = [...ERRORS];
  if (is_charged) errors.push('quota_exceeded');
  if ((schema?.body ?? doc.body) !== undefined) errors.push(...BODY_ERRORS);
  if (url.includes(':sandbox_id')) errors.push('not_found');
  return { url, method, schema, doc, security: [{ token: scope ? [scope] : [] }], errors, is_charged };
}

/** Throws `not_found` for an impossible id without asking the database, which cannot store every text of a path. */
function demandId({ params, routeOptions }: FastifyRequest): void {
  const { sandbox_id } = params as { sandbox_id?: string };
  if (sandbox_id === undefined || routeOptions.config.is_open || isSandboxId(sandbox_id)) return;
  throw noSandbox();
}
