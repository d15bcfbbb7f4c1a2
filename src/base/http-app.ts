import { isUtf8 } from 'node:buffer';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  type RawReplyDefaultExpression,
  type RawRequestDefaultExpression,
  type RawServerDefault,
} from 'fastify';
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { BODY_MAX_BYTES } from '../contract/defaults.ts';
import { CatalogueError, type ErrorCode, errorBody, invalidField } from '../contract/errors.ts';
import { kernelRandom } from './entropy.ts';
import type { Log } from './log.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answered without a token. */
    is_open?: boolean;
    /** The body is handed to the route as the bytes that came. */
    is_raw?: boolean;
  }
}

export type HttpApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** What fastify and Node say, in the words of the catalogue. */
const CODES: Record<string, ErrorCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_request',
  FST_ERR_BAD_URL: 'invalid_request',
  FST_ERR_MAX_PARAM_LENGTH: 'invalid_request',
  FST_ERR_VALIDATION: 'invalid_request',
};

/**
 * An application with the contract's envelope, error catalogue, body limits and `X-Request-Id`. Routes are added to
 * it; `sealRoutes` comes after the last. Source: contract section 4, "The local API".
 */
export function createHttpApp(log: Log): HttpApp {
  const prefix = kernelRandom(6).toString('hex');
  let requests = 0;
  const app = fastify({
    bodyLimit: BODY_MAX_BYTES,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 200 },
    genReqId: () => `${prefix}-${(++requests).toString(36)}`,
    // Checked as they are, without generated code: start-up counts more than the few bodies with a schema.
    schemaController: {
      compilersFactory: {
        buildValidator: () => validator as never,
        buildSerializer: () => () => (data: unknown) => JSON.stringify(data),
      },
    },
  }).withTypeProvider<TypeBoxTypeProvider>() as unknown as HttpApp;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseBody);
  app.setErrorHandler((error, request, reply) => answerError(log, error as Error, request, reply));
  app.setNotFoundHandler(() => {
    throw new CatalogueError('not_found', 'There is no such path.');
  });
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    done();
  });
  return app;
}

/** Answers the methods that a path does not take with 405, and makes the application ready. */
export async function sealRoutes(
  app: HttpApp,
  routes: { url: string; method: string | string[] }[],
): Promise<void> {
  const taken = new Map<string, Set<string>>();
  for (const { url, method } of routes) {
    const methods = taken.get(url) ?? new Set();
    for (const each of [method].flat()) methods.add(each);
    taken.set(url, methods);
  }
  await withStreamedBodies(app, (any) => {
    for (const [url, methods] of taken) {
      const missing = METHODS.filter((method) => !methods.has(method));
      any.route({
        method: missing,
        url,
        config: { is_open: true },
        handler: (_request, reply) => {
          reply.header('allow', [...methods].join(', '));
          throw new CatalogueError('method_not_allowed');
        },
      });
    }
  });
  await app.ready();
}

/** Adds routes whose bodies may be of any type and length: nobody reads them but the routes themselves. */
export async function withStreamedBodies(app: HttpApp, add: (app: HttpApp) => void): Promise<void> {
  await app.register(async (streamed) => {
    streamed.removeAllContentTypeParsers();
    streamed.addContentTypeParser('*', (_request, _payload, done) => done(null));
    add(streamed as unknown as HttpApp);
  });
}

/** The envelope of a success. */
export function success(data: unknown): { success: true; data: unknown } {
  return { success: true, data };
}

function parseBody(
  request: FastifyRequest,
  body: Buffer,
  done: (error: Error | null, body?: unknown) => void,
) {
  if (request.routeOptions.config.is_raw) return done(null, body);
  if (body.length === 0) return done(null, undefined);
  if (!isUtf8(body)) return done(invalidField('body', 'is not UTF-8'));
  try {
    done(null, JSON.parse(body.toString('utf8')));
  } catch {
    done(invalidField('body', 'is not JSON'));
  }
}

function validator({ schema }: { schema: TSchema }) {
  return (value: unknown) => {
    if (value === null || value === undefined) {
      if (Value.Check(schema, {})) return { value };
      return { error: invalidField('body', 'is needed') };
    }
    if (Value.Check(schema, value)) return { value };
    const [first] = Value.Errors(schema, value);
    return { error: invalidField(...fieldOf(first)) };
  };
}

/** The field at fault and what is wrong with it, from a schema's first error. */
function fieldOf(
  error: { keyword: string; instancePath: string; message: string; params?: object } | undefined,
): [string, string] {
  const params = error?.params as
    | { additionalProperties?: string[]; requiredProperties?: string[] }
    | undefined;
  const path = (error?.instancePath ?? '').slice(1).replaceAll('/', '.');
  const inner = (names: string[] | undefined) => [path, names?.[0]].filter(Boolean).join('.');
  // What the schema does not name is held against `false`.
  if (error?.keyword === 'boolean') return [path, 'is not known'];
  if (params?.additionalProperties) return [inner(params.additionalProperties), 'is not known'];
  if (params?.requiredProperties) return [inner(params.requiredProperties), 'is needed'];
  return [path || 'body', error?.message ?? 'is not valid'];
}

function answerError(
  log: Log,
  error: Error & { code?: string },
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const known = error instanceof CatalogueError ? error : toCatalogue(error);
  if (known.code === 'internal_error') {
    log.error({ request_id: request.id, reason: error.message, stack: error.stack }, 'a request failed');
  }
  const retry_after_s = (known.details as { retry_after_s?: number } | undefined)?.retry_after_s;
  if (retry_after_s !== undefined) reply.header('retry-after', String(retry_after_s));
  return reply.code(known.status).send(errorBody(known));
}

function toCatalogue(error: Error & { code?: string }): CatalogueError {
  const code = CODES[error.code ?? ''];
  if (code === 'invalid_request') return new CatalogueError(code, error.message);
  return code ? new CatalogueError(code) : new CatalogueError('internal_error');
}
